// Every committed language model through the package on Chromium's software GPU, which takes minutes to compile their kernels: apart from the other
// programs, so that both run at the same time. SPDX-License-Identifier: BSD-3-Clause
import { testPrograms } from "./support/browser_programs.mjs";

testPrograms([["gpu", "llm"], ["gpu", "decoders"]]);

// Every committed program through the package in headless Chromium, on the CPU, and on its software GPU but for language models, which are in
// decoders_browser.test.mjs. SPDX-License-Identifier: BSD-3-Clause
import { testPrograms } from "./support/browser_programs.mjs";

testPrograms([
  ...["ops", "values", "state", "llm", "decoders"].map((folder) => ["cpu", folder]),
  ...["ops", "values", "state"].map((folder) => ["gpu", folder]),
]);

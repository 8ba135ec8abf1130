// Entry point of theme.js. SPDX-License-Identifier: BSD-3-Clause

import { applyTheme } from "./theme.ts";

applyTheme();

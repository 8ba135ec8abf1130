#!/usr/bin/env node
// npx pteryx: the command line of the package. SPDX-License-Identifier: BSD-3-Clause
import { run } from "./cli/run.js";

process.exitCode = await run(process.argv.slice(2));

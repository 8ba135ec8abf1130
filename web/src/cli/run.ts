// One run of the command line. SPDX-License-Identifier: BSD-3-Clause
import { readFile } from "node:fs/promises";
import { PteryxError } from "../errors.js";
import { UsageError, kHelp, readArguments, type Arguments } from "./arguments.js";
import { chat } from "./chat.js";
import { note } from "./terminal.js";

/** What the process ends with. */
export const ExitCode = { success: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/** Does what the arguments say, and tells the exit code. Errors are one line on stderr. */
export async function run(args: readonly string[]): Promise<number> {
  // Whoever reads the output may have had enough of it.
  process.stdout.on("error", (error: { code?: string }) => process.exit(error.code === "EPIPE" ? ExitCode.success : ExitCode.failure));
  let read: Arguments;
  try {
    read = readArguments(args, process.env);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    note(`${error.message}; see pteryx --help`);
    return ExitCode.usage;
  }
  try {
    switch (read.command) {
      case "help":
        process.stdout.write(kHelp);
        return ExitCode.success;
      case "version":
        process.stdout.write(`${await version()}\n`);
        return ExitCode.success;
      case "chat":
        return (await chat(read.chat)) === "interrupted" ? ExitCode.interrupted : ExitCode.success;
    }
  } catch (error) {
    if (error instanceof PteryxError && error.code === "cancelled") return ExitCode.interrupted;
    note(error instanceof Error ? error.message : String(error));
    return ExitCode.failure;
  }
}

/** Of the package, whose dist/ this is in. */
async function version(): Promise<string> {
  const text = await readFile(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

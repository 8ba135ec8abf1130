// What the command line says. SPDX-License-Identifier: BSD-3-Clause
import { parseArgs } from "node:util";

/** A command line that cannot be understood. */
export class UsageError extends Error {}

export interface ChatArguments {
  readonly model: string;
  /** Answered alone; else there is a conversation. */
  readonly prompt?: string;
  readonly system?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly seed?: number;
  readonly device: "auto" | "gpu" | "cpu";
  /** In bytes. */
  readonly cacheLimit?: number;
}
export type Arguments = { readonly command: "help" | "version" } | { readonly command: "chat"; readonly chat: ChatArguments };

export const kHelp = `Usage: pteryx chat MODEL [OPTION]...

Talks with a language model: a .gguf file, which is converted the first time, or a .pte file; an address of one will do.

  -p, --prompt TEXT     answer this message and quit
      --system TEXT     system message
      --max-tokens N    most tokens of an answer
      --temperature T   0, the default, takes the likeliest token each time
      --seed N          of what is drawn where the temperature is not 0
      --device NAME     auto (the default), gpu or cpu
  -h, --help            show this
  -V, --version         show the version

Each line of a pipe is a message. Ctrl-C stops an answer, and quits at the prompt; Ctrl-D quits, too.
Conversions are kept in PTERYX_CACHE, or in the folder pteryx of XDG_CACHE_HOME or ~/.cache; PTERYX_CACHE_LIMIT is its limit in MiB, 32768 unless set.
For a GPU: npm install webgpu.
`;

const kOptions = {
  prompt: { type: "string", short: "p" },
  system: { type: "string" },
  "max-tokens": { type: "string" },
  temperature: { type: "string" },
  seed: { type: "string" },
  device: { type: "string" },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "V" },
} as const;

/** Throws a UsageError. */
export function readArguments(args: readonly string[], environment: NodeJS.ProcessEnv): Arguments {
  const { values, positionals } = parse(args);
  if (values.help) return { command: "help" };
  if (values.version) return { command: "version" };
  const [command, model, ...more] = positionals;
  if (command === undefined) throw new UsageError("expected a command: chat");
  if (command !== "chat") throw new UsageError(`there is no command '${command}': expected chat`);
  if (model === undefined) throw new UsageError("chat: expected a model, a .gguf or .pte file");
  if (more.length > 0) throw new UsageError(`chat: expected one model, got '${more[0]}', too`);
  const { prompt, system, device = "auto" } = values;
  if (device !== "auto" && device !== "gpu" && device !== "cpu") throw new UsageError(`--device: expected auto, gpu or cpu, got '${device}'`);
  if (prompt !== undefined && prompt.trim() === "") throw new UsageError("--prompt: the message is empty");
  return {
    command,
    chat: {
      model,
      device,
      ...(prompt === undefined ? {} : { prompt }),
      ...(system === undefined ? {} : { system }),
      ...kept(environment["PTERYX_CACHE_LIMIT"]),
      ...number("--max-tokens", "maxTokens", values["max-tokens"], /^\d+$/, "a whole number from 1", (n) => n >= 1),
      ...number("--temperature", "temperature", values.temperature, /^\d*\.?\d+$/, "a number from 0 to 100", (n) => n <= 100),
      ...number("--seed", "seed", values.seed, /^\d+$/, "a whole number from 0", () => true),
    },
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: kOptions, allowPositionals: true, strict: true });
  } catch (error) {
    // The first sentence says what; the others give advice for rare cases.
    const text = error instanceof Error ? error.message : String(error);
    throw new UsageError(text.split(/\. |\n/)[0]!.replace(/\.$/, ""));
  }
}

function kept(limit: string | undefined): { cacheLimit?: number } {
  const { mib } = number("PTERYX_CACHE_LIMIT", "mib", limit || undefined, /^\d+$/, "a number of MiB", (n) => n <= 2 ** 32);
  return mib === undefined ? {} : { cacheLimit: mib * 2 ** 20 };
}

function number<Name extends string>(
  option: string, name: Name, text: string | undefined, form: RegExp, expected: string, fits: (n: number) => boolean,
): { [name in Name]?: number } {
  if (text === undefined) return {};
  const n = Number(text);
  if (!form.test(text) || !Number.isFinite(n) || n > Number.MAX_SAFE_INTEGER || !fits(n)) throw new UsageError(`${option}: expected ${expected}, got '${text}'`);
  return { [name]: n } as { [name in Name]?: number };
}

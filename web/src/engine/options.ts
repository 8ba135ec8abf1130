// What callers may pass, checked for those that have no types. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { isCacheEntry } from "../source/open_input.js";

type Check = readonly [expected: string, fits?: (value: any) => unknown];

const isText = (value: unknown): boolean => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";
const isWhole = (value: unknown): boolean => isNumber(value) && Math.floor(value) === value && value >= 0;
const isInput = (value: unknown): boolean => (isText(value) && value !== "") || [URL, Blob, ArrayBuffer, Uint8Array].some((type) => value instanceof type) || isCacheEntry(value);
const oneOf = (names: string): Check => [names, (value) => names.split(/, | or /).includes(value)];
const listOf = (expected: string, fits: (item: any) => unknown): Check => [`an array of ${expected}`, (value) => Array.isArray(value) && value.every(fits)];
const range = (least: number, most: number): Check => [`a number from ${least} to ${most}`, (value) => isNumber(value) && value >= least && value <= most];

/** By the names of options and arguments. What has no condition is of the type that is expected. The bounds of numbers are those of the command line. */
const kChecks: readonly (readonly [names: string, ...Check])[] = [
  ["options", "an object"],
  ["inputs", "an array or an object"],
  ["input tokenizer", "an address, a file or bytes", isInput],
  ["data", ...listOf("addresses, files or bytes", isInput)],
  ["prompt", "a string or an array of token ids", (value) => isText(value) || (Array.isArray(value) && value.every(isWhole))],
  ["text", "a string"],
  ["tokens", ...listOf("token ids", isWhole)],
  ["messages", ...listOf("messages with the strings role and content", (message) => isText(message?.role) && isText(message.content))],
  ["signal", "an AbortSignal", (value) => value?.addEventListener],
  ["onProgress onPrompt", "a function"],
  ["worker cache logProbabilities ignoreEnd shift", "a boolean"],
  ["cacheFolder sha256", "a string"],
  ["device", ...oneOf("auto, gpu or cpu")],
  ["precision kv", ...oneOf("f32 or f16")],
  ["stop", ...listOf("strings", isText)],
  ["cacheLimit", "a number from 0", (value) => isNumber(value) && value >= 0],
  ["memoryLimit", "a number above 0", (value) => isNumber(value) && value > 0],
  ["temperature", ...range(0, 100)],
  ["topP minP", ...range(0, 1)],
  ["repetitionPenalty", ...range(0.01, 100)],
  ["presencePenalty frequencyPenalty", ...range(-100, 100)],
  ["threads", "a number from 0 to 64", (value) => Number.isInteger(value) && value >= 0 && value <= 64],
  ["maxTokens topK seed", "a whole number from 0", isWhole],
];
/** `disable` is for tests. */
const kNames: ReadonlySet<string> = new Set(["disable", ...kChecks.flatMap(([names]) => names.split(" "))]);

/** A value as messages show it. */
export function shown(value: unknown): string {
  const text = isText(value) ? JSON.stringify(value) : Array.isArray(value) ? `[${value}]` : (typeof value === "object" && value?.constructor?.name) || String(value);
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}

/** Throws where an option has a name or a value that it cannot have. `given`: arguments beside them. */
export function check(options: object, given: Readonly<Record<string, unknown>> = {}): void {
  const valueOf = (name: string): unknown => (name === "options" ? options : ((name in given ? given : options) as Readonly<Record<string, unknown>>)[name]);
  for (const [names, expected, fits = (value: unknown) => value !== null && expected.includes(typeof value)] of kChecks) {
    for (const name of names.split(" ")) {
      const value = valueOf(name);
      if ((value !== undefined || name in given) && !fits(value)) throw new PteryxError("invalid-argument", `${name}: expected ${expected}, got ${shown(value)}`);
    }
  }
  const unknown = Object.keys(options).find((name) => !kNames.has(name));
  if (unknown !== undefined) throw new PteryxError("invalid-argument", `there is no option '${unknown}'`);
}

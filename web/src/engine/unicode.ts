// Unicode's tables, by what the engine knows: kinds of characters, and their cases. SPDX-License-Identifier: BSD-3-Clause

const BLOCK = 0x100;
const BLOCKS = 0x110000 / BLOCK;

/** By the numbers of CharKind in pteryx/llm/tokenizer/unicode_tables.h, from 1 on. */
const KINDS = ["\\p{L}", "\\p{M}", "\\p{Nd}", "\\p{Nl}", "\\p{No}", "\\p{Pc}", "[\\p{P}--\\p{Pc}]"];

let kinds: readonly RegExp[] | undefined;
const blocks: (Uint8Array | undefined)[] = [];

function readBlock(block: number): Uint8Array {
  kinds ??= KINDS.map((set) => new RegExp(set, "v"));
  const known = new Uint8Array(BLOCK);
  for (let i = 0; i < BLOCK; ++i) {
    const char = String.fromCodePoint(block * BLOCK + i);
    known[i] = kinds.findIndex((kind) => kind.test(char)) + 1;
  }
  return known;
}

/** A number of CharKind; 0 for what is none of them. */
export function charKind(code: number): number {
  const block = Math.floor(code / BLOCK);
  if (block >= BLOCKS) return 0;
  return (blocks[block] ??= readBlock(block))[code % BLOCK]!;
}

// A script has only the full mappings, with which some letters become several.
function mapped(code: number, map: (char: string) => string): number | undefined {
  if (code > 0x10ffff) return code;
  const text = map(String.fromCodePoint(code));
  const first = text.codePointAt(0)!;
  return text.length === (first > 0xffff ? 2 : 1) ? first : undefined;
}

/** The small letter of a character by the simple mappings, or itself. */
export function lowerCase(code: number): number {
  return mapped(code, (char) => char.toLowerCase()) ?? 0x69; // a capital i with a dot is the only one that becomes two
}

/** The capital letter of a character likewise. */
export function upperCase(code: number): number {
  const capital = mapped(code, (char) => char.toUpperCase());
  if (capital !== undefined) return capital;
  // The sharp s, and Greek vowels with an iota below, have a capital that leads back to them.
  return [0x1e9e, code + 8, code + 9].find((other) => lowerCase(other) === code) ?? code;
}

/** The letter that begins a word likewise, which scripts do not have: the capital, but for the few below. */
export function titleCase(code: number): number {
  if ((code >= 0x1c4 && code <= 0x1cc) || (code >= 0x1f1 && code <= 0x1f3)) {
    return 3 * Math.round(code / 3); // of DZ, Dz and dz the second
  }
  if ((code >= 0x10d0 && code <= 0x10fa) || (code >= 0x10fd && code <= 0x10ff)) return code; // Georgian
  return upperCase(code);
}

// What the module asks of the page for tokenizers and chat templates: the imports of pteryx/llm/tokenizer/web_imports.h.
// SPDX-License-Identifier: BSD-3-Clause
import type { ModuleMemory } from "./module_memory.js";
import { compilePattern } from "./regex.js";
import { charKind, lowerCase, titleCase, upperCase } from "./unicode.js";

const FORMS: Readonly<Record<string, string>> = { C: "NFC", D: "NFD", K: "NFKC", k: "NFKD" };
/** What regex_find_all says when the engine gives up. */
const GAVE_UP = -1;

/** Goes through a text and says at which byte of its UTF-8 a place is. Places must not go back. */
class ByteCounter {
  #unit = 0;
  #byte = 0;

  constructor(readonly text: string) {}

  at(unit: number): number {
    for (; this.#unit < unit; ++this.#unit) {
      const code = this.text.charCodeAt(this.#unit);
      // A pair of surrogates is four bytes.
      this.#byte += code < 0x80 ? 1 : code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 2 : 3;
    }
    return this.#byte;
  }
}

/** Writes the matches that are not empty as pairs of byte offsets, and says how many. */
function findAll(regex: RegExp, text: string, sizeBytes: number, pairs: Uint32Array): number {
  const counter = text.length === sizeBytes ? undefined : new ByteCounter(text); // ASCII alone needs none
  let found = 0;
  regex.lastIndex = 0;
  for (;;) {
    const match = regex.exec(text);
    if (match === null) return found;
    const begin = match.index;
    const end = regex.lastIndex;
    if (end === begin) {
      if (end >= text.length) return found;
      regex.lastIndex = end + (text.codePointAt(end)! > 0xffff ? 2 : 1);
      continue;
    }
    pairs[2 * found] = counter?.at(begin) ?? begin;
    pairs[2 * found + 1] = counter?.at(end) ?? end;
    ++found;
  }
}

/** The functions that pteryx/llm/tokenizer/web_imports.h declares, over a module's memory. */
export function makeTextImports(memory: ModuleMemory) {
  const regexes = new Map<number, RegExp>();
  const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let last = 0;

  return {
    regex_compile(pattern: number, size: number): number {
      try {
        regexes.set(++last, compilePattern(strict.decode(memory.view(pattern, size).slice())));
        return last;
      } catch {
        return 0;
      }
    },
    regex_release(regex: number): void {
      regexes.delete(regex);
    },
    regex_find_all(regex: number, text: number, size: number, pairs: number): number {
      const compiled = regexes.get(regex);
      if (compiled === undefined) return GAVE_UP;
      const at = pairs >>> 2;
      try {
        return findAll(compiled, memory.text(text, size), size, memory.words.subarray(at, at + 2 * size));
      } catch {
        return GAVE_UP; // its stack or memory is full
      }
    },
    unicode_kind: (code: number): number => charKind(code >>> 0),
    unicode_lower: (code: number): number => lowerCase(code >>> 0),
    unicode_upper: (code: number): number => upperCase(code >>> 0),
    unicode_title: (code: number): number => titleCase(code >>> 0),
    unicode_normalize(text: number, size: number, form: number, out: number, room: number): number {
      const bytes = memory.encode(memory.text(text, size).normalize(FORMS[String.fromCharCode(form)]));
      if (bytes.length <= room >>> 0) memory.bytes.set(bytes, out >>> 0);
      return bytes.length;
    },
  };
}

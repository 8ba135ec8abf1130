// Reads a pattern as PCRE writes it into a tree. What a RegExp cannot do the same way is refused.
// SPDX-License-Identifier: BSD-3-Clause
import { letterSet, literal, otherCases, posixSet, propertySet } from "./char_sets.js";

/** A part of a pattern. */
export type Part =
  | { readonly kind: "set"; readonly text: string } // one character, as a RegExp writes it
  | { readonly kind: "place"; readonly text: string } // an assertion, likewise
  | { readonly kind: "look"; readonly opening: "?=" | "?!" | "?<=" | "?<!"; readonly body: Part }
  | { readonly kind: "atomic"; readonly body: Part }
  | { readonly kind: "sequence"; readonly parts: readonly Part[] }
  | { readonly kind: "choice"; readonly branches: readonly Part[] }
  | { readonly kind: "repeat"; readonly body: Part; readonly min: number; readonly max: number; readonly mode: Mode };
/** How a repeated part gives back what it took. */
export type Mode = "greedy" | "lazy" | "possessive";

/** Without a reason: the module names the pattern, and nothing more. */
export class RefusedPattern extends Error {}

const ANY = "\\p{Any}"; // and not [^], which some engines take for one character with the flag v, however often it is repeated
const AT_START = `(?<!${ANY})`;
const AT_END = `(?!${ANY})`;
const BEFORE_LAST_LINE_END = `(?=\\n?${AT_END})`;
const MOST_NESTED = 250;
const MOST_REPEATS = 65535;
const WORD = `[${letterSet("w")}]`;
const PLACES: Readonly<Record<string, string>> = {
  A: AT_START,
  z: AT_END,
  Z: BEFORE_LAST_LINE_END,
  b: `(?:(?<=${WORD})(?!${WORD})|(?<!${WORD})(?=${WORD}))`,
  B: `(?:(?<=${WORD})(?=${WORD})|(?<!${WORD})(?!${WORD}))`,
};
const CONTROLS: Readonly<Record<string, number>> = { a: 7, e: 0x1b, f: 0xc, n: 0xa, r: 0xd, t: 9 };
const LINE_END: Part = {
  kind: "atomic",
  body: { kind: "set", text: `(?:\\r\\n|[${letterSet("v")}])` },
};

interface Flags {
  caseless: boolean;
  everyLine: boolean;
  dotAll: boolean;
}

class Parser {
  readonly #chars: readonly string[];
  #at = 0;
  #depth = 0;
  #flags: Flags = { caseless: false, everyLine: true, dotAll: false };

  constructor(pattern: string) {
    this.#chars = Array.from(pattern);
  }

  whole(): Part {
    const part = this.#choice();
    if (this.#at < this.#chars.length) this.#refuse(); // a closing parenthesis without an opening one
    return part;
  }

  #refuse(): never {
    throw new RefusedPattern();
  }
  #peek(ahead = 0): string {
    return this.#chars[this.#at + ahead] ?? "";
  }
  #starts(text: string): boolean {
    return Array.from(text).every((char, i) => this.#peek(i) === char);
  }
  #take(text: string): boolean {
    if (!this.#starts(text)) return false;
    this.#at += text.length;
    return true;
  }
  #next(): string {
    if (this.#at >= this.#chars.length) this.#refuse();
    return this.#chars[this.#at++]!;
  }
  #until(end: string): string {
    const to = this.#chars.indexOf(end, this.#at);
    if (to < 0) this.#refuse();
    const text = this.#chars.slice(this.#at, to).join("");
    this.#at = to + 1;
    return text;
  }

  // A change of flags holds to the end of the group, in its later branches too.
  #choice(): Part {
    if (++this.#depth > MOST_NESTED) this.#refuse();
    const before = { ...this.#flags };
    const branches: Part[] = [];
    do {
      branches.push(this.#sequence());
    } while (this.#take("|"));
    this.#flags = before;
    --this.#depth;
    return branches.length === 1 ? branches[0]! : { kind: "choice", branches };
  }

  #sequence(): Part {
    const parts: Part[] = [];
    while (this.#at < this.#chars.length && this.#peek() !== "|" && this.#peek() !== ")") {
      const part = this.#item();
      if (part !== undefined) parts.push(this.#repeated(part));
    }
    return { kind: "sequence", parts };
  }

  #item(): Part | undefined {
    const char = this.#next();
    switch (char) {
      case "(":
        return this.#group();
      case "[":
        return this.#brackets();
      case "\\":
        return this.#escape();
      case ".":
        return { kind: "set", text: this.#flags.dotAll ? ANY : "[^\\n]" };
      case "^":
        // Not after a line end that ends the text.
        return { kind: "place", text: this.#flags.everyLine ? `(?:${AT_START}|(?<=\\n)(?=${ANY}))` : AT_START };
      case "$":
        return { kind: "place", text: this.#flags.everyLine ? "(?![^\\n])" : BEFORE_LAST_LINE_END };
      case "*":
      case "+":
      case "?":
        return this.#refuse();
      case "{":
        if (this.#bounds(this.#at) !== undefined) this.#refuse();
        return this.#char(0x7b);
      default:
        return this.#char(char.codePointAt(0)!);
    }
  }

  #char(code: number): Part {
    const others = this.#flags.caseless ? otherCases([code, code]) : [];
    const text = [code, ...others].map(literal).join("");
    return { kind: "set", text: others.length > 0 ? `[${text}]` : text };
  }

  // The {n}, {n,} or {n,m} that follows the brace before a place, and where it ends.
  #bounds(from: number): { min: number; max: number; end: number } | undefined {
    const text = this.#chars.slice(from, from + 24).join("");
    const found = /^(\d{1,9})(,(\d{1,9})?)?\}/.exec(text);
    if (found === null) return undefined;
    const min = Number(found[1]);
    const max = found[2] === undefined ? min : found[3] === undefined ? Infinity : Number(found[3]);
    return { min, max, end: from + found[0].length };
  }

  #quantifier(): { min: number; max: number } | undefined {
    if (this.#take("*")) return { min: 0, max: Infinity };
    if (this.#take("+")) return { min: 1, max: Infinity };
    if (this.#take("?")) return { min: 0, max: 1 };
    const bounds = this.#peek() === "{" ? this.#bounds(this.#at + 1) : undefined;
    if (bounds === undefined) return undefined;
    this.#at = bounds.end;
    const last = Number.isFinite(bounds.max) ? bounds.max : bounds.min;
    if (bounds.min > MOST_REPEATS || last > MOST_REPEATS || bounds.max < bounds.min) this.#refuse();
    return bounds;
  }

  #repeated(body: Part): Part {
    const count = this.#quantifier();
    if (count === undefined) return body;
    const mode: Mode = this.#take("+") ? "possessive" : this.#take("?") ? "lazy" : "greedy";
    if (this.#quantifier() !== undefined) this.#refuse(); // a repeat of a repeat
    return { kind: "repeat", body, min: count.min, max: count.max, mode };
  }

  #closed(part: Part): Part {
    if (!this.#take(")")) this.#refuse();
    return part;
  }

  #group(): Part | undefined {
    if (this.#peek() === "*") this.#refuse(); // a verb
    if (!this.#take("?")) return this.#closed(this.#choice());
    if (this.#take("#")) return void this.#until(")");
    if (this.#take(":") || this.#take("|")) return this.#closed(this.#choice());
    if (this.#take(">")) return this.#closed({ kind: "atomic", body: this.#choice() });
    for (const opening of ["?=", "?!", "?<=", "?<!"] as const) {
      if (this.#take(opening.slice(1))) return this.#closed({ kind: "look", opening, body: this.#choice() });
    }
    // A name is of no use: what it captures cannot be asked for.
    for (const [opening, closing] of [["P<", ">"], ["<", ">"], ["'", "'"]] as const) {
      if (!this.#take(opening)) continue;
      if (!/^[\p{L}_][\p{L}\p{Nd}_]*$/u.test(this.#until(closing))) this.#refuse();
      return this.#closed(this.#choice());
    }
    return this.#flagGroup();
  }

  #flagGroup(): Part | undefined {
    const changed = { ...this.#flags };
    let on = true;
    if (this.#take("^")) Object.assign(changed, { caseless: false, everyLine: false, dotAll: false });
    for (;;) {
      const letter = this.#next();
      if (letter === "-" && on) on = false;
      else if (letter === "i") changed.caseless = on;
      else if (letter === "m") changed.everyLine = on;
      else if (letter === "s") changed.dotAll = on;
      else if (letter === ")") {
        this.#flags = changed;
        return undefined;
      } else if (letter === ":") {
        const before = this.#flags;
        this.#flags = changed;
        const body = this.#choice();
        this.#flags = before;
        return this.#closed(body);
      } else this.#refuse();
    }
  }

  #escape(): Part {
    const letter = this.#next();
    const place = PLACES[letter];
    if (place !== undefined) return { kind: "place", text: place };
    if (letter === "R") return LINE_END;
    if (letter === "N" && this.#peek() !== "{") return { kind: "set", text: "[^\\n]" };
    const members = this.#escapedSet(letter);
    if (members !== undefined) return { kind: "set", text: `[${members}]` };
    return this.#char(this.#escapedChar(letter));
  }

  #escapedSet(letter: string): string | undefined {
    if (letter !== "p" && letter !== "P") return letterSet(letter);
    let name = this.#next();
    if (name === "{") name = this.#until("}").replace(/[\s-]/g, "");
    const inverse = name.startsWith("^");
    const set = propertySet(inverse ? name.slice(1) : name, (letter === "P") !== inverse);
    return set ?? this.#refuse();
  }

  #escapedChar(letter: string): number {
    const control = CONTROLS[letter];
    if (control !== undefined) return control;
    if (letter === "x") return this.#number(this.#peek() === "{" ? /^\{([0-9A-Fa-f]{1,6})\}/ : /^([0-9A-Fa-f]{0,2})/, 16);
    if (letter === "o") return this.#number(/^\{([0-7]{1,7})\}/, 8);
    if (letter === "0") return this.#number(/^([0-7]{0,2})/, 8);
    if (letter === "c") {
      const code = this.#next().toUpperCase().codePointAt(0)!;
      if (code < 0x20 || code > 0x7e) this.#refuse();
      return code ^ 0x40;
    }
    if (/[0-9A-Za-z]/.test(letter)) this.#refuse();
    return letter.codePointAt(0)!;
  }

  #number(form: RegExp, base: number): number {
    const found = form.exec(this.#chars.slice(this.#at, this.#at + 9).join(""));
    if (found === null) return this.#refuse();
    this.#at += found[0].length;
    const code = parseInt(found[1] || "0", base);
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) this.#refuse();
    return code;
  }

  // One member of a class: a character, or a set's members.
  #member(): number | string {
    const char = this.#next();
    if (char === "[" && /^[:.=]$/.test(this.#peek())) {
      const mark = this.#peek();
      const rest = this.#chars.slice(this.#at + 1, this.#at + 12).join("");
      const named = /^(\^?[a-z]*)([:.=])\]/.exec(rest);
      if (named !== null && named[2] === mark) {
        this.#at += 1 + named[0].length;
        return (mark === ":" ? posixSet(named[1]!) : undefined) ?? this.#refuse();
      }
    }
    if (char !== "\\") return char.codePointAt(0)!;
    const letter = this.#next();
    if (letter === "b") return 8;
    return this.#escapedSet(letter) ?? this.#escapedChar(letter);
  }

  #brackets(): Part {
    const inverse = this.#take("^");
    let members = "";
    for (let first = true; first || this.#peek() !== "]"; first = false) {
      if (this.#starts("&&")) this.#refuse();
      const from = this.#member();
      const ranged = this.#peek() === "-" && this.#peek(1) !== "]" && this.#peek(1) !== "";
      if (!ranged) {
        members += typeof from === "string" ? from : this.#range(from, from);
        continue;
      }
      ++this.#at;
      const to = this.#member();
      if (typeof from === "string" || typeof to === "string" || to < from) this.#refuse();
      members += this.#range(from, to);
    }
    ++this.#at;
    return { kind: "set", text: `[${inverse ? "^" : ""}${members}]` };
  }

  #range(first: number, last: number): string {
    const others = this.#flags.caseless ? otherCases([first, last]).map(literal).join("") : "";
    return (first === last ? literal(first) : `${literal(first)}-${literal(last)}`) + others;
  }
}

/** The tree of a pattern. Throws RefusedPattern. */
export function parsePattern(pattern: string): Part {
  return new Parser(pattern).whole();
}

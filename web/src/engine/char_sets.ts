// Sets of characters as patterns of tokenizers name them, written for a RegExp with the flag v, and which characters are the same
// but for their case. SPDX-License-Identifier: BSD-3-Clause

/** A range of code points, both ends included. */
export type CharRange = readonly [first: number, last: number];

/** Members of the sets that PCRE names by one letter, to stand between brackets. */
const LETTER_SETS: Readonly<Record<string, string>> = {
  d: "\\p{Nd}",
  h: "\\t\\u{20}\\u{A0}\\u{1680}\\u{180E}\\u{2000}-\\u{200A}\\u{202F}\\u{205F}\\u{3000}",
  s: "\\t-\\r\\u{20}\\u{85}\\u{A0}\\u{1680}\\u{2000}-\\u{200A}\\u{2028}\\u{2029}\\u{202F}\\u{205F}\\u{3000}",
  v: "\\n-\\r\\u{85}\\u{2028}\\u{2029}",
  w: "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}",
};

/** The sets of POSIX, as PCRE has them with Unicode's properties. */
const POSIX_SETS: Readonly<Record<string, string>> = {
  alpha: "\\p{L}",
  lower: "\\p{Ll}",
  upper: "\\p{Lu}",
  alnum: "\\p{L}\\p{N}",
  space: LETTER_SETS["s"]!,
  blank: LETTER_SETS["h"]!,
  cntrl: "\\p{Cc}",
  digit: LETTER_SETS["d"]!,
  word: LETTER_SETS["w"]!,
  punct: "\\p{P}\\u{24}\\u{2B}\\u{3C}-\\u{3E}\\u{5E}\\u{60}\\u{7C}\\u{7E}",
  xdigit: "0-9A-Fa-f",
  ascii: "\\u{0}-\\u{7F}",
};

/** One character, in or out of brackets. */
export function literal(code: number): string {
  const text = String.fromCodePoint(code);
  return /^[0-9A-Za-z]$/.test(text) ? text : `\\u{${code.toString(16).toUpperCase()}}`;
}

/** Members of \d, \S and the like; undefined for other letters. */
export function letterSet(letter: string): string | undefined {
  const members = LETTER_SETS[letter.toLowerCase()];
  if (members === undefined) return undefined;
  return letter === letter.toLowerCase() ? members : `[^${members}]`;
}

/** Members of [:name:]; undefined for what POSIX does not have, and for graph and print. */
export function posixSet(name: string): string | undefined {
  const members = POSIX_SETS[name.replace(/^\^/, "")];
  return name.startsWith("^") && members !== undefined ? `[^${members}]` : members;
}

function accepted(property: string): boolean {
  try {
    new RegExp(`^\\p{${property}}$`, "v");
    return true;
  } catch {
    return false;
  }
}

/**
 * The escape for a property: a general category, a script or a property that is true or false. Undefined if the engine has none
 * of that name.
 */
export function propertySet(name: string, negated: boolean): string | undefined {
  const own = { "L&": "LC", Xan: "[\\p{L}\\p{N}]", Xwd: "[\\p{L}\\p{N}_]", Xsp: `[${LETTER_SETS["s"]}]`, Xps: `[${LETTER_SETS["s"]}]` }[name];
  if (own?.startsWith("[")) return negated ? own.replace("[", "[^") : own;
  const given = own ?? name;
  const titled = given.toLowerCase().replace(/(^|_)([a-z])/g, (_, before: string, first: string) => before + first.toUpperCase());
  const named = /^(?:sc|script|scx|script_?extensions)\s*[:=]\s*(\w+)$/i.exec(given);
  for (const tried of [given, titled]) {
    const found = named
      ? [`${/x|ext/i.test(given.split(/[:=]/)[0]!) ? "scx" : "sc"}=${tried === given ? named[1] : tried.split(/[:=]\s*/)[1]}`]
      : [`gc=${tried}`, `sc=${tried}`, tried];
    for (const property of found) {
      // A property of strings is no set of characters.
      if (/^[\w=]+$/.test(property) && accepted(property) && !property.startsWith("RGI_") && !/^(Basic_Emoji|Emoji_Keycap_Sequence)$/.test(property)) {
        return `\\${negated ? "P" : "p"}{${property}}`;
      }
    }
  }
  return undefined;
}

const ASCII_FOLDS: ReadonlyMap<number, number> = new Map([
  [0x4b, 0x212a], [0x6b, 0x212a], // the kelvin sign
  [0x53, 0x17f], [0x73, 0x17f], // the long s
]);
let folds: ReadonlyMap<number, readonly number[]> | undefined;

/** By character: all that are the same but for case. Only those of which there are several. */
function allFolds(): ReadonlyMap<number, readonly number[]> {
  if (folds !== undefined) return folds;
  const sets = new Map<number, number[]>();
  const cased = new RegExp("\\p{Changes_When_Casemapped}", "gv");
  const join = (a: number, b: number): void => {
    const [kept, added] = [sets.get(a) ?? [a], sets.get(b) ?? [b]];
    if (kept === added) return;
    for (const code of added) kept.push(code);
    for (const code of kept) sets.set(code, kept);
  };
  for (let block = 0; block < 0x20000; block += 0x1000) {
    const text = String.fromCodePoint(...Array.from({ length: 0x1000 }, (_, i) => block + i));
    for (const [char] of text.matchAll(cased)) {
      const code = char.codePointAt(0)!;
      if (code === 0x131) continue; // the dotless i has a capital, and is not its small letter
      for (const other of [char.toLowerCase(), char.toUpperCase()]) {
        const mapped = other.codePointAt(0)!;
        if (other.length === String.fromCodePoint(mapped).length && mapped !== code) join(code, mapped);
      }
    }
  }
  folds = sets;
  return folds;
}

/** The characters outside a range that are the same as one inside but for their case. */
export function otherCases([first, last]: CharRange): number[] {
  const others = new Set<number>();
  if (last < 0x80) {
    for (let code = first; code <= last; ++code) {
      if (!/[A-Za-z]/.test(String.fromCharCode(code))) continue;
      others.add(code ^ 0x20);
      const far = ASCII_FOLDS.get(code);
      if (far !== undefined) others.add(far);
    }
  } else {
    for (const [code, same] of allFolds()) {
      if (code >= first && code <= last) for (const other of same) others.add(other);
    }
  }
  return [...others].filter((code) => code < first || code > last).sort((a, b) => a - b);
}

// Patterns of tokenizers, which are written for engines such as PCRE, as RegExps. SPDX-License-Identifier: BSD-3-Clause
import { type Part, RefusedPattern, parsePattern } from "./regex_parser.js";

const LONGEST_PATTERN = 16 * 1024;

/**
 * Whether a part can match nothing: not at all, only when it can match nothing else, or before. A RegExp does not go round a loop
 * for nothing, so only in the last case it differs from PCRE.
 */
type Empty = "never" | "last" | "early";

interface Written {
  readonly text: string;
  readonly empty: Empty;
}

class Writer {
  #groups = 0;
  #behind = 0;

  write(part: Part): Written {
    switch (part.kind) {
      case "set":
        return { text: part.text, empty: "never" };
      case "place":
        return { text: part.text, empty: "last" };
      case "look": {
        if (part.opening.startsWith("?<")) ++this.#behind;
        const body = this.write(part.body).text;
        if (part.opening.startsWith("?<")) --this.#behind;
        return { text: `(${part.opening}${body})`, empty: "last" };
      }
      case "atomic":
        return this.#atomic(() => this.write(part.body));
      case "sequence":
        return this.#sequence(part.parts.map((each) => this.write(each)));
      case "choice":
        return this.#choice(part.branches.map((each) => this.write(each)));
      case "repeat":
        return this.#repeat(part);
    }
  }

  // A lookahead has one way to match, and leaves what it matched in a group.
  #atomic(write: () => Written): Written {
    if (this.#behind > 0) throw new RefusedPattern(); // an atomic group that is looked back at
    const group = ++this.#groups;
    const body = write();
    return { text: `(?:(?=(${body.text}))\\${group})`, empty: body.empty === "never" ? "never" : "last" };
  }

  #sequence(parts: readonly Written[]): Written {
    const text = parts.map((each) => each.text).join("");
    if (parts.some((each) => each.empty === "never")) return { text, empty: "never" };
    return { text, empty: parts.some((each) => each.empty === "early") ? "early" : "last" };
  }

  #choice(branches: readonly Written[]): Written {
    const text = `(?:${branches.map((each) => each.text).join("|")})`;
    const first = branches.findIndex((each) => each.empty !== "never");
    if (first < 0) return { text, empty: "never" };
    return { text, empty: first === branches.length - 1 ? branches[first]!.empty : "early" };
  }

  #repeat(part: Part & { kind: "repeat" }): Written {
    if (part.mode === "possessive") {
      if (part.body.kind === "set" && this.#behind === 0) return this.#possessive(part.body.text, part.min, part.max);
      return this.#atomic(() => this.#repeat({ ...part, mode: "greedy" }));
    }
    const body = this.write(part.body);
    if (body.empty === "early" && part.max > part.min) throw new RefusedPattern();
    const once = part.body.kind === "set" ? body.text : `(?:${body.text})`;
    const text = once + count(part.min, part.max) + (part.mode === "lazy" ? "?" : "");
    if (part.min > 0) return { text, empty: body.empty };
    return { text, empty: part.mode === "lazy" ? "early" : "last" };
  }

  // A run of a set's characters takes all that follow, which one look at the next tells.
  #possessive(set: string, min: number, max: number): Written {
    const empty = min > 0 ? "never" : "last";
    if (max === Infinity) return { text: `${set}${count(min, max)}(?!${set})`, empty };
    if (min === max) return { text: set + count(min, max), empty };
    return { text: `(?:${set}${count(max, max)}|${set}${count(min, max - 1)}(?!${set}))`, empty };
  }
}

function count(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`;
  if (min === 0 && max === 1) return "?";
  return min === max ? (min === 1 ? "" : `{${min}}`) : `{${min},${max}}`;
}

/**
 * The RegExp that finds in a text what PCRE would. Throws RefusedPattern for a pattern that is wrong, or that has no such RegExp:
 * back references, recursion, conditions, verbs, \G, \K, \X.
 */
export function compilePattern(pattern: string): RegExp {
  if (pattern.length > LONGEST_PATTERN) throw new RefusedPattern();
  const source = new Writer().write(parsePattern(pattern)).text;
  try {
    return new RegExp(source || "(?:)", "gv");
  } catch {
    throw new RefusedPattern();
  }
}

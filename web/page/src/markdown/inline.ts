// Text with emphasis, code and links. SPDX-License-Identifier: BSD-3-Clause
// One pass over the characters, then one over the delimiters. Few delimiters are open at a time, so hostile text takes linear time and
// makes no deep trees.

import { type Inline, safeHref } from "./syntax.ts";

/** Delimiters that wait for their partner; an older one is text. */
const kMaxOpen = 12;
/** `****` and longer runs are text. */
const kMaxRun = 3;
const kPunctuation = /[\p{P}\p{S}]/u;
const kAddress = /https?:\/\/[^\s<>"'`\\^{|}[\]]{1,2000}/y;
const kBracketed = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const kLinkTail = /\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;

/** A piece of text on its way to a tree: finished, or a run of delimiters that may still open or close something. */
interface Part {
  inline: Inline;
  mark: string;
  count: number;
  opens: boolean;
  closes: boolean;
}

export function parseInline(text: string): Inline[] {
  return new InlineParser(text).parse();
}

class InlineParser {
  private parts: Part[] = [];
  private readonly brackets: { part: number; image: boolean; textStart: number }[] = [];
  private pending = "";
  private at = 0;
  /** Where the next run of that many backticks begins is looked for once: a run that has no partner is remembered. */
  private readonly missing = new Set<number>();

  constructor(private readonly text: string) {}

  parse(): Inline[] {
    while (this.at < this.text.length) this.step();
    this.flush();
    return finish(this.parts);
  }

  private step(): void {
    const c = this.text[this.at]!;
    if (c === "\\") return this.escape();
    if (c === "`") return this.code();
    if (c === "*" || c === "_" || c === "~") return this.delimiters(c);
    if (c === "[") return this.openBracket(false, 1);
    if (c === "!" && this.text[this.at + 1] === "[") return this.openBracket(true, 2);
    if (c === "]") return this.closeBracket();
    if (c === "<" && this.match(kBracketed, (m) => [m[1]!, m[0].length])) return;
    if (c === "h" && !/\w/.test(this.text[this.at - 1] ?? "") && this.match(kAddress, trimAddress)) return;
    if (c === "\n") return this.newline();
    this.pending += c;
    this.at++;
  }

  private push(part: Part): void {
    this.flush();
    this.parts.push(part);
  }

  private flush(): void {
    if (this.pending === "") return;
    const text = this.pending;
    this.pending = "";
    this.parts.push(plain({ type: "text", text }));
  }

  private escape(): void {
    const next = this.text[this.at + 1] ?? "";
    if (next === "\n") {
      this.push(plain({ type: "break" }));
      this.at += 2;
    } else if (next !== "" && next < "\x7f" && kPunctuation.test(next)) {
      this.pending += next;
      this.at += 2;
    } else {
      this.pending += "\\";
      this.at++;
    }
  }

  private code(): void {
    const count = runLength(this.text, this.at, "`");
    const start = this.at + count;
    let end = this.missing.has(count) ? -1 : this.text.indexOf("`", start);
    while (end >= 0) {
      const length = runLength(this.text, end, "`");
      if (length === count) break;
      end = this.text.indexOf("`", end + length);
    }
    if (end < 0) {
      this.missing.add(count);
      this.pending += "`".repeat(count);
      this.at = start;
      return;
    }
    let body = this.text.slice(start, end).replace(/\n/g, " ");
    if (body.startsWith(" ") && body.endsWith(" ") && body.trim() !== "") body = body.slice(1, -1);
    this.push(plain({ type: "code", text: body }));
    this.at = end + count;
  }

  private delimiters(mark: string): void {
    const count = runLength(this.text, this.at, mark);
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[this.at + count] ?? " ";
    const spaceBefore = /\s/.test(before);
    const spaceAfter = /\s/.test(after);
    const left = !spaceAfter && (!kPunctuation.test(after) || spaceBefore || kPunctuation.test(before));
    const right = !spaceBefore && (!kPunctuation.test(before) || spaceAfter || kPunctuation.test(after));
    const opens = mark === "_" ? left && (!right || kPunctuation.test(before)) : left;
    const closes = mark === "_" ? right && (!left || kPunctuation.test(after)) : right;
    const usable = mark === "~" ? count === 2 : count <= kMaxRun;
    this.push({ inline: { type: "text", text: mark.repeat(count) }, mark: usable ? mark : "", count, opens, closes });
    this.at += count;
  }

  private openBracket(image: boolean, length: number): void {
    this.push(plain({ type: "text", text: image ? "![" : "[" }));
    this.at += length;
    this.brackets.push({ part: this.parts.length - 1, image, textStart: this.at });
  }

  private closeBracket(): void {
    const open = this.brackets.pop();
    kLinkTail.lastIndex = this.at + 1;
    const tail = open && kLinkTail.exec(this.text);
    const href = tail && safeHref(tail[1]!.replace(/\\([!-/:-@[-`{-~])/g, "$1"));
    if (!open || !href) {
      // A link that must not be followed stays as it was written.
      this.pending += "]";
      this.at++;
      return;
    }
    this.flush();
    const inner = this.parts.splice(open.part);
    inner.shift();
    // An image would be fetched without being asked for; it becomes a link to it.
    const source = this.text.slice(open.textStart, this.at);
    const children: Inline[] = finish(inner);
    const shown: Inline[] = children.length > 0 ? children : [{ type: "text", text: source || href }];
    this.push(plain({ type: "link", href, children: withoutLinks(shown) }));
    this.at = kLinkTail.lastIndex;
  }

  private match(pattern: RegExp, read: (m: RegExpExecArray) => [string, number]): boolean {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) return false;
    const [address, length] = read(found);
    const href = safeHref(address);
    if (href === null) return false;
    this.push(plain({ type: "link", href, children: [{ type: "text", text: address.replace(/^mailto:/, "") }] }));
    this.at += length;
    return true;
  }

  private newline(): void {
    const hard = this.pending.endsWith("  ");
    this.pending = trimEnd(this.pending, " ");
    if (hard) this.push(plain({ type: "break" }));
    else this.pending += "\n";
    this.at++;
    while (this.text[this.at] === " ") this.at++;
  }
}

/** Pairs delimiters, the nearest first, and gives the tree. */
function finish(parts: readonly Part[]): Inline[] {
  const open: number[] = [];
  const out: Part[] = [];
  for (const each of parts) {
    const part = { ...each };
    if (part.mark !== "" && part.closes) close(part, out, open);
    if (part.mark !== "" && part.count === 0) continue;
    out.push(part);
    if (part.mark === "" || !part.opens) continue;
    open.push(out.length - 1);
    if (open.length > kMaxOpen) open.shift();
  }
  return merge(out.map((p) => p.inline));
}

function close(closer: Part, out: Part[], open: number[]): void {
  while (closer.count > 0) {
    let s = open.length - 1;
    while (s >= 0 && !pairs(out[open[s]!]!, closer)) s--;
    if (s < 0) return;
    const opener = out[open[s]!]!;
    const inner = out.splice(open[s]! + 1);
    open.length = s + 1;
    const used = closer.mark === "~" || (opener.count >= 2 && closer.count >= 2) ? 2 : 1;
    shorten(opener, used);
    shorten(closer, used);
    if (opener.count === 0) {
      out.pop();
      open.pop();
    }
    const type = closer.mark === "~" ? "del" : used === 2 ? "strong" : "em";
    out.push(plain({ type, children: merge(inner.map((p) => p.inline)) }));
  }
}

/** A part that opens and closes nothing. */
function plain(inline: Inline): Part {
  return { inline, mark: "", count: 0, opens: false, closes: false };
}

function pairs(opener: Part, closer: Part): boolean {
  if (opener.mark !== closer.mark) return false;
  if (closer.mark === "~") return opener.count === closer.count;
  // A run that could do both pairs only with a run that makes no multiple of three with it.
  if ((opener.closes || closer.opens) && (opener.count + closer.count) % 3 === 0) return opener.count % 3 === 0 && closer.count % 3 === 0;
  return true;
}

function shorten(part: Part, used: number): void {
  part.count -= used;
  part.inline = { type: "text", text: part.mark.repeat(part.count) };
}

function merge(inlines: readonly Inline[]): Inline[] {
  const out: Inline[] = [];
  for (const inline of inlines) {
    const last = out[out.length - 1];
    if (inline.type === "text" && last?.type === "text") out[out.length - 1] = { type: "text", text: last.text + inline.text };
    else out.push(inline);
  }
  return out;
}

function withoutLinks(inlines: readonly Inline[]): Inline[] {
  return merge(
    inlines.flatMap((i): Inline[] => {
      if (i.type === "link") return withoutLinks(i.children);
      return "children" in i ? [{ ...i, children: withoutLinks(i.children) }] : [i];
    }),
  );
}

function runLength(text: string, at: number, c: string): number {
  let end = at;
  while (text[end] === c) end++;
  return end - at;
}

/** Punctuation after an address belongs to the sentence; so does a closing bracket without an opening one. */
function trimAddress(m: RegExpExecArray): [string, number] {
  let address = trimEnd(m[0], ".,:;!?*_~");
  let open = 0;
  for (const c of address) open += c === "(" || c === "[" ? 1 : c === ")" || c === "]" ? -1 : 0;
  let end = address.length;
  for (; open < 0 && (address[end - 1] === ")" || address[end - 1] === "]"); open++) end--;
  address = trimEnd(address.slice(0, end), ".,:;!?*_~");
  return [address, address.length];
}

/** `/[set]+$/` would take quadratic time on long runs of the set. */
function trimEnd(text: string, set: string): string {
  let end = text.length;
  while (end > 0 && set.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}

// Lines into blocks: what chat models write, and nothing that needs HTML. SPDX-License-Identifier: BSD-3-Clause

import type { Align, Block, ListItem } from "./syntax.ts";

/** Quotes and lists inside each other; deeper ones are text. */
const kMaxDepth = 8;

const kFence = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
const kHeading = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const kRule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( *)([-*+]|(\d{1,9})[.)])( +|$)/;
const kTask = /^\[([ xX])\] /;

/** A block and the lines it was read from. */
export interface SourceBlock {
  readonly block: Block;
  readonly source: string;
}

export function parseBlocks(text: string): SourceBlock[] {
  const lines = text.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n");
  const out: SourceBlock[] = [];
  parseLines(lines, 0, (block, from, to) => out.push({ block, source: lines.slice(from, to).join("\n") }));
  return out;
}

type Emit = (block: Block, from: number, to: number) => void;

function parseLines(lines: readonly string[], depth: number, emit: Emit): void {
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at]!)) {
      at++;
      continue;
    }
    const [block, next] = readBlock(lines, at, depth);
    emit(block, at, next);
    at = next;
  }
}

function inside(lines: readonly string[], depth: number): Block[] {
  const blocks: Block[] = [];
  parseLines(lines, depth + 1, (block) => blocks.push(block));
  return blocks;
}

function readBlock(lines: readonly string[], at: number, depth: number): [Block, number] {
  const line = lines[at]!;
  const fence = kFence.exec(line);
  if (fence) return readFence(lines, at, fence);
  const heading = kHeading.exec(line);
  if (heading) return [{ type: "heading", level: heading[1]!.length, text: headingText(line.slice(heading[0].length)) }, at + 1];
  if (kRule.test(line)) return [{ type: "rule" }, at + 1];
  if (depth < kMaxDepth && kQuote.test(line)) return readQuote(lines, at, depth);
  if (depth < kMaxDepth && kItem.test(line)) return readList(lines, at, depth);
  if (startsTable(lines, at)) return readTable(lines, at);
  return readParagraph(lines, at, depth);
}

/** Whether a line ends the paragraph before it. */
function interrupts(lines: readonly string[], at: number, depth: number): boolean {
  const line = lines[at]!;
  if (isBlank(line) || kFence.test(line) || kHeading.test(line) || kRule.test(line)) return true;
  if (depth < kMaxDepth && kQuote.test(line)) return true;
  const item = depth < kMaxDepth ? kItem.exec(line) : null;
  // "1986. A good year" inside a paragraph is no list.
  if (item && item[4] !== "" && (item[3] === undefined || item[3] === "1")) return true;
  return startsTable(lines, at);
}

function readFence(lines: readonly string[], at: number, fence: RegExpExecArray): [Block, number] {
  const [, indent, marks, info] = fence as unknown as [string, string, string, string];
  const body: string[] = [];
  let next = at + 1;
  while (next < lines.length) {
    const line = lines[next++]!;
    const bare = line.trim();
    if (bare.length >= marks.length && bare === marks[0]!.repeat(bare.length) && indentOf(line) < 4) break;
    body.push(line.slice(Math.min(indentOf(line), indent.length)));
  }
  const language = info.trim().split(/[\s{]/, 1)[0] ?? "";
  return [{ type: "code", language, text: body.join("\n") }, next];
}

function headingText(text: string): string {
  const trimmed = text.trim();
  let end = trimmed.length;
  while (trimmed[end - 1] === "#") end--;
  return end === 0 || trimmed[end - 1] === " " ? trimmed.slice(0, end).trim() : trimmed;
}

function readQuote(lines: readonly string[], at: number, depth: number): [Block, number] {
  const body: string[] = [];
  let next = at;
  for (; next < lines.length && kQuote.test(lines[next]!); next++) body.push(lines[next]!.replace(kQuote, ""));
  return [{ type: "quote", blocks: inside(body, depth) }, next];
}

function readList(lines: readonly string[], at: number, depth: number): [Block, number] {
  const first = kItem.exec(lines[at]!)!;
  const ordered = first[3] !== undefined;
  const kind = ordered ? first[2]!.slice(-1) : first[2]!;
  const items: ListItem[] = [];
  let tight = true;
  let next = at;
  while (next < lines.length) {
    const marker = kItem.exec(lines[next]!);
    const same = marker && (ordered ? marker[3] !== undefined && marker[2]!.endsWith(kind) : marker[2] === kind);
    if (!same || kRule.test(lines[next]!)) break;
    const [body, end, loose] = readItem(lines, next, marker);
    items.push(listItem(body, depth));
    const following = skipBlank(lines, end);
    const goesOn = following < lines.length && kItem.test(lines[following]!);
    if (loose || (following > end && goesOn)) tight = false;
    next = goesOn ? following : end;
  }
  return [{ type: "list", start: ordered ? Number(first[3]) : null, tight, items }, next];
}

/** The item's lines without its indentation, the line after it, and whether blank lines part its blocks. */
function readItem(lines: readonly string[], at: number, marker: RegExpExecArray): [string[], number, boolean] {
  const indent = marker[1]!.length;
  const content = marker[4]!.length > 4 ? indent + marker[2]!.length + 1 : marker[0].length;
  const body = [lines[at]!.slice(content)];
  let loose = false;
  let next = at + 1;
  let end = next;
  while (next < lines.length) {
    const line = lines[next]!;
    if (isBlank(line)) {
      next++;
      continue;
    }
    const depth = indentOf(line);
    const blanks = next - end;
    const nested = depth > indent + 1 && kItem.test(line);
    const belongs = depth >= content || nested || (blanks === 0 && !startsSomething(line));
    if (!belongs) break;
    // A blank line before a nested list does not make the outer one loose.
    if (blanks > 0 && !nested && !kItem.test(line.slice(content))) loose = true;
    for (let i = 0; i < blanks; i++) body.push("");
    body.push(line.slice(Math.min(depth, content)));
    end = ++next;
  }
  return [body, end, loose];
}

function startsSomething(line: string): boolean {
  return kItem.test(line) || kFence.test(line) || kHeading.test(line) || kQuote.test(line) || kRule.test(line);
}

function listItem(body: readonly string[], depth: number): ListItem {
  const task = kTask.exec(body[0]!);
  const lines = task ? [body[0]!.slice(task[0].length), ...body.slice(1)] : body;
  return { checked: task ? task[1] !== " " : null, blocks: inside(lines, depth) };
}

function startsTable(lines: readonly string[], at: number): boolean {
  const head = lines[at]!;
  const rule = lines[at + 1];
  if (rule === undefined || !head.includes("|") || !rule.includes("-")) return false;
  const align = alignments(rule);
  return align !== null && align.length === cells(head).length;
}

function alignments(line: string): Align[] | null {
  if (!/^[\s|:-]+$/.test(line)) return null;
  const out: Align[] = [];
  for (const cell of cells(line)) {
    if (!/^:?-+:?$/.test(cell)) return null;
    out.push(cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : cell.startsWith(":") ? "left" : "");
  }
  return out;
}

function cells(line: string): string[] {
  let row = line.trim();
  if (row.startsWith("|")) row = row.slice(1);
  if (row.endsWith("|") && !row.endsWith("\\|")) row = row.slice(0, -1);
  return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function readTable(lines: readonly string[], at: number): [Block, number] {
  const align = alignments(lines[at + 1]!)!;
  const rows: string[][] = [];
  let next = at + 2;
  for (; next < lines.length && !isBlank(lines[next]!) && lines[next]!.includes("|"); next++) {
    const row = cells(lines[next]!).slice(0, align.length);
    while (row.length < align.length) row.push("");
    rows.push(row);
  }
  return [{ type: "table", align, head: cells(lines[at]!), rows }, next];
}

function readParagraph(lines: readonly string[], at: number, depth: number): [Block, number] {
  let next = at + 1;
  while (next < lines.length && !interrupts(lines, next, depth)) next++;
  const text = lines.slice(at, next).map((line, i) => (i === 0 ? line.trimStart() : line)).join("\n");
  return [{ type: "paragraph", text: text.trimEnd() }, next];
}

function skipBlank(lines: readonly string[], at: number): number {
  let next = at;
  while (next < lines.length && isBlank(lines[next]!)) next++;
  return next;
}

function isBlank(line: string): boolean {
  return line.trim() === "";
}

function indentOf(line: string): number {
  let n = 0;
  while (line[n] === " ") n++;
  return n;
}

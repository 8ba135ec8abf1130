// Markdown as the chat shows it: what models write, and what attackers would. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { test } from "node:test";
import { importTs } from "./support/import_ts.mjs";

const { parseBlocks } = await importTs("page/src/markdown/blocks.ts");
const { parseInline } = await importTs("page/src/markdown/inline.ts");

/** A tree as a short text: em(a), strong(b), link:href(c), `d`. */
function show(inlines) {
  return inlines.map((i) => {
    if (i.type === "text") return i.text;
    if (i.type === "code") return `\`${i.text}\``;
    if (i.type === "break") return "⏎";
    return `${i.type}${i.href ? `:${i.href}` : ""}(${show(i.children)})`;
  }).join("");
}
const inline = (text) => show(parseInline(text));
const blocks = (text) => parseBlocks(text).map((b) => b.block);

test("emphasis", () => {
  const cases = {
    "plain": "plain",
    "*a* and _b_": "em(a) and em(b)",
    "**a** and __b__": "strong(a) and strong(b)",
    "***a***": "em(strong(a))",
    "**a *b* c**": "strong(a em(b) c)",
    "*a **b** c*": "em(a strong(b) c)",
    "snake_case_name": "snake_case_name",
    "2 * 3 * 4": "2 * 3 * 4",
    "a*b*c": "aem(b)c",
    "~~gone~~ ~not~": "del(gone) ~not~",
    "**open": "**open",
    "*a": "*a",
    "a * b*": "a * b*",
    "**a*": "*em(a)",
    "\\*a\\*": "*a*",
    "**bold**text": "strong(bold)text",
    "**Note:** x": "strong(Note:) x",
  };
  for (const [text, expected] of Object.entries(cases)) assert.equal(inline(text), expected, text);
});

test("code spans are literal", () => {
  assert.equal(inline("`a*b*`"), "`a*b*`");
  assert.equal(inline("``a ` b``"), "`a ` b`");
  assert.equal(inline("`open *a*"), "`open em(a)");
  assert.equal(inline("*a `b* c` d*"), "em(a `b* c` d)");
});

test("links go to http, https and mailto only", () => {
  assert.equal(inline("[a](https://x.org/)"), "link:https://x.org/(a)");
  assert.equal(inline("[a *b*](http://x.org/p_(q) \"title\")"), "link:http://x.org/p_(q)(a em(b))");
  assert.equal(inline("<mailto:me@x.org>"), "link:mailto:me@x.org(me@x.org)");
  assert.equal(inline("see https://x.org/a(b)."), "see link:https://x.org/a(b)(https://x.org/a(b)).");
  assert.equal(inline("(https://x.org/a)"), "(link:https://x.org/a(https://x.org/a))");
  const hostile = [
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\tscript:alert(1)", "\x01javascript:alert(1)", "data:text/html,<script>alert(1)</script>",
    "vbscript:x", "file:///etc/passwd", "//evil.example", "/relative", "blob:null/1", "&#106;avascript:alert(1)", "about:blank",
  ];
  for (const href of hostile) {
    for (const text of [`[a](${href})`, `<${href}>`, `![a](${href})`]) assert.ok(!inline(text).includes("link:"), text);
  }
});

test("an image is a link, never a request", () => {
  assert.equal(inline("![cat](https://x.org/cat.png)"), "link:https://x.org/cat.png(cat)");
});

test("links do not nest", () => {
  assert.equal(inline("[a [b](https://x.org/) c](https://y.org/)"), "link:https://y.org/(a b c)");
});

test("breaks", () => {
  assert.equal(inline("a  \nb\nc\\\nd"), "a⏎b\nc⏎d");
});

test("blocks", () => {
  assert.deepEqual(blocks("# A #\n\ntext\nmore\n## B"), [
    { type: "heading", level: 1, text: "A" },
    { type: "paragraph", text: "text\nmore" },
    { type: "heading", level: 2, text: "B" },
  ]);
  assert.deepEqual(blocks("a\n\n---\n\n> q\n> r"), [
    { type: "paragraph", text: "a" },
    { type: "rule" },
    { type: "quote", blocks: [{ type: "paragraph", text: "q\nr" }] },
  ]);
  assert.deepEqual(blocks("#hash is no heading"), [{ type: "paragraph", text: "#hash is no heading" }]);
});

test("fenced code", () => {
  assert.deepEqual(blocks("```python\nprint('*')\n\n# not a heading\n```\nafter"), [
    { type: "code", language: "python", text: "print('*')\n\n# not a heading" },
    { type: "paragraph", text: "after" },
  ]);
  assert.deepEqual(blocks("```\nopen"), [{ type: "code", language: "", text: "open" }]);
  assert.deepEqual(blocks("````\n```\n````"), [{ type: "code", language: "", text: "```" }]);
  assert.deepEqual(blocks("~~~js\na\n~~~"), [{ type: "code", language: "js", text: "a" }]);
});

test("lists", () => {
  const [list] = blocks("1. one\n2. two\n   - a\n   - b\n3. three");
  assert.equal(list.start, 1);
  assert.equal(list.tight, true);
  assert.equal(list.items.length, 3);
  assert.equal(list.items[1].blocks[1].items.length, 2);
  const [loose] = blocks("- a\n\n- b");
  assert.equal(loose.tight, false);
  // Models indent by less than the standard asks for.
  const [shallow] = blocks("1. one\n  - a\n2. two");
  assert.equal(shallow.items.length, 2);
  assert.equal(shallow.items[0].blocks[1].type, "list");
  const [code] = blocks("1. one:\n\n   ```sh\n   ls\n   ```\n\n2. two");
  assert.deepEqual(code.items[0].blocks[1], { type: "code", language: "sh", text: "ls" });
  assert.equal(code.items.length, 2);
  const [task] = blocks("- [x] done\n- [ ] open");
  assert.deepEqual(task.items.map((i) => i.checked), [true, false]);
  assert.deepEqual(blocks("It was in\n1986. Then").map((b) => b.type), ["paragraph"]);
  assert.deepEqual(blocks("Points:\n- a\n- b").map((b) => b.type), ["paragraph", "list"]);
});

test("tables", () => {
  const [table] = blocks("| a | b |\n|:--|--:|\n| 1 | x \\| y |\n| 2 |\n\nafter");
  assert.deepEqual(table, { type: "table", align: ["left", "right"], head: ["a", "b"], rows: [["1", "x | y"], ["2", ""]] });
  assert.deepEqual(blocks("a | b\nno rule").map((b) => b.type), ["paragraph"]);
});

test("a block's source is what it was read from", () => {
  const found = parseBlocks("a\n\n- b\n- c\n\n```\nd\n```\n");
  assert.deepEqual(found.map((b) => b.source), ["a", "- b\n- c", "```\nd\n```"]);
});

test("markup of HTML is text", () => {
  for (const text of ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<b>a</b>", "&lt;"]) {
    assert.deepEqual(parseInline(text), [{ type: "text", text }]);
  }
});

function depth(node) {
  const children = [...(node.children ?? []), ...(node.blocks ?? []), ...(node.items ?? [])];
  return 1 + children.reduce((most, child) => Math.max(most, depth(child)), 0);
}

test("hostile nesting is flat and fast", () => {
  const n = 20_000;
  const texts = [
    "*a ".repeat(n), "*a ".repeat(n) + " b*".repeat(n), "**a ".repeat(n) + " b**".repeat(n), "[".repeat(n), "[".repeat(n) + "]".repeat(n),
    "[a](".repeat(n), "[a](https://x.org".repeat(n), "`".repeat(n), "`a``b".repeat(n), Array.from({ length: 300 }, (_, i) => "`".repeat(i)).join(" "),
    "_a_*b*".repeat(n), "~~".repeat(n), "https://x".repeat(n), `https://x${")".repeat(n)}`, `https://x${"!".repeat(n)}a`, `${" ".repeat(n)}a\nb`.repeat(3),
    "*_".repeat(n), "a**b".repeat(n), "*".repeat(n) + "a" + "*".repeat(n), "\\".repeat(n), "<".repeat(n), "<https://".repeat(n), "!".repeat(n) + "[",
  ];
  for (const text of texts) {
    const start = performance.now();
    const tree = parseInline(text);
    const took = performance.now() - start;
    assert.ok(took < 1500, `${text.slice(0, 20)}… took ${took} ms`);
    assert.ok(depth({ children: tree }) < 60, text.slice(0, 20));
  }
  const lines = [
    "> ".repeat(n), `${"> ".repeat(500)}a\n`.repeat(50), "- ".repeat(n), Array.from({ length: 1000 }, (_, i) => `${" ".repeat(2 * i)}- a`).join("\n"),
    "|".repeat(n), `${"|".repeat(2000)}\n${"-|".repeat(2000)}`, "#".repeat(n), `# a ${"# ".repeat(n)}`, "- ".repeat(n) + "x", "*\n".repeat(n), "a\n".repeat(n), "```\n".repeat(n),
  ];
  for (const text of lines) {
    const start = performance.now();
    const found = blocks(text);
    const took = performance.now() - start;
    assert.ok(took < 1500, `${text.slice(0, 20)}… took ${took} ms`);
    assert.ok(depth({ blocks: found }) < 40, text.slice(0, 20));
  }
});

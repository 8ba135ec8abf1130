// Tokenizers and chat templates in WebAssembly, over the regular expressions and Unicode tables of the script: what the native ones
// are tested against. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { TextModule, engine } from "./support/text_module.mjs";

const fixtures = new URL("../../tests/fixtures/", import.meta.url);
const readJson = async (path) => JSON.parse(await readFile(new URL(path, fixtures), "utf8"));
const module = await TextModule.load();

const tokenizers = await readJson("tokenizers/goldens.json");
assert.ok(Object.keys(tokenizers.cases).length >= 19);
for (const [name, golden] of Object.entries(tokenizers.cases)) {
  test(`tokenizer ${name}`, async () => {
    module.call("open", await readFile(new URL(`tokenizers/${name}`, fixtures)));
    const decode = (ids, show, streamed) => module.call("decode", new Uint8Array(new Uint32Array(ids).buffer), Number(show), streamed);
    const shows = name.endsWith(".tiktoken");
    for (const [i, text] of tokenizers.texts.entries()) {
      for (const mode of ["plain", "special"].filter((each) => golden[each])) {
        assert.deepEqual(module.call("encode", text, Number(mode === "special"), 0).ids(), golden[mode][i], `${mode}: ${JSON.stringify(text)}`);
      }
      const ids = (golden.special ?? golden.plain)[i];
      assert.equal(decode(ids, shows, 0).text(), golden.decoded[i]);
      assert.equal(decode(ids, shows, 1).text(), golden.decoded[i]);
    }
    for (const [i, ids] of golden.ids.entries()) {
      assert.equal(decode(ids, !name.endsWith(".model"), 0).text(), golden.ids_decoded[i]);
    }
    for (const [i, hex] of tokenizers.not_utf8.entries()) {
      const ids = module.call("encode", Buffer.from(hex, "hex"), 0, 0).ids();
      if (golden.bytes) assert.deepEqual(ids, golden.bytes[i], hex);
    }
    if (golden.framed) assert.deepEqual(module.call("encode", "Hello world", 0, 1).ids(), golden.framed);
  });
}

const chatText = await readFile(new URL("chat/goldens.json", fixtures), "utf8");
const chat = JSON.parse(chatText);
function expectRendered(source, member, element, expected) {
  const render = () => module.call("render", source, member, element, ...chat.now).text();
  if (expected.text !== undefined) return assert.equal(render(), expected.text, source);
  assert.throws(render, (error) => error.message.startsWith("template line ") && error.message.endsWith(expected.raised ?? ""), source);
}
test("chat templates", async () => {
  module.call("read_document", chatText); // a script would lose that 3.0 is no integer
  assert.ok(Object.keys(chat.templates).length >= 12);
  for (const [name, rendered] of Object.entries(chat.templates)) {
    const source = await readFile(new URL(`chat/${name}`, fixtures), "utf8");
    for (const [i, expected] of rendered.entries()) expectRendered(source, "conversations", i, expected);
  }
  for (const feature of chat.features) expectRendered(feature.template, "variables", 0, feature);
});

const patterns = await readJson("regex/cases.json");
function found(pattern, text) {
  try {
    const bytes = Buffer.from(text);
    const ends = module.call("find_all", pattern, text).ids();
    return Array.from({ length: ends.length / 2 }, (_, i) => bytes.subarray(ends[2 * i], ends[2 * i + 1]).toString());
  } catch (error) {
    assert.match(error.message, /the browser does not accept it/);
    return null;
  }
}
test("regular expressions", () => {
  assert.ok(patterns.length >= 100);
  for (const { pattern, text, matches, script } of patterns) {
    assert.deepEqual(found(pattern, text), script === "refuses" ? null : matches, `${pattern} in ${JSON.stringify(text)}`);
  }
});
test("a regular expression that runs out of memory is an error, and the next one works", () => {
  const long = "ab".repeat(8_000_000);
  assert.throws(() => module.call("find_all", "\\A(?>ab)*x", long), /the browser gave up/);
  assert.deepEqual(found("b+", "abb"), ["bb"]);
});
test("a long text takes time in proportion", () => {
  const text = "Ein Wörtchen: naïve 12345 times 😀, again.\n".repeat(20_000);
  const began = performance.now();
  const all = module.call("find_all", patterns[1].pattern, text).words();
  assert.equal(all.at(-1), Buffer.byteLength(text));
  assert.ok(performance.now() - began < 20_000);
});

// The tables of Python, of an older Unicode: a character that it knows has not changed since, but for capitals that came later.
const tables = JSON.parse(
  execFileSync("python3", [fileURLToPath(new URL("support/unicode_tables.py", import.meta.url))], { encoding: "utf8", maxBuffer: 1 << 26 }),
);
test("characters", () => {
  const known = { lower: new Map(tables.lower), upper: new Map(tables.upper), title: new Map(tables.title) };
  const assigned = (code) => tables.runs.some(([first, last]) => code >= first && code <= last);
  const wrong = [];
  let compared = 0;
  for (const [first, last, kind] of tables.runs) {
    const words = module.call("characters", first, last - first + 1).words();
    for (let code = first, at = 0; code <= last; ++code, at += 4, ++compared) {
      if (words[at] !== tables.kinds.indexOf(kind)) wrong.push({ code, kind, got: words[at] });
      for (const [i, [name, others]] of Object.entries(known).entries()) {
        const other = words[at + 1 + i];
        // A capital of a later Unicode is not assigned in Python's.
        if (other !== (others.get(code) ?? code) && assigned(other)) wrong.push({ code, [name]: others.get(code), got: other });
      }
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(compared > 140_000);
});
test("normal forms", () => {
  for (const [form, changed] of tables.normal.entries()) {
    assert.ok(changed.length > 1000);
    const text = changed.map(([from]) => `${from}.`).join("");
    assert.equal(module.call("normalize", text, form).text(), changed.map(([, to]) => `${to}.`).join(""));
  }
});

test("patterns are translated alike for letters of either case", () => {
  for (let code = 0; code < 0x1f000; ++code) {
    const char = String.fromCodePoint(code);
    if (char.toLowerCase() === char.toUpperCase() || /[\u0130\u0131]/.test(char)) continue;
    const set = engine.compilePattern(`(?i:${char})`);
    for (const other of [char, char.toLowerCase(), char.toUpperCase()]) {
      if (new RegExp(`^${char}$`, "iu").test(other)) assert.match(other, new RegExp(`^${set.source}$`, "v"), code.toString(16));
    }
  }
});
test("the clock of the C library", () => {
  const memory = new engine.ModuleMemory(new WebAssembly.Memory({ initial: 1 }));
  const wasi = engine.makeWasiImports(memory);
  assert.equal(wasi.clock_time_get(0, 0n, 16), 0);
  assert.ok(Math.abs(memory.wide(16) / 1e6 - Date.now()) < 1000);
  assert.equal(wasi.clock_time_get(1, 0n, 24), 0);
  assert.notEqual(wasi.clock_time_get(9, 0n, 24), 0);
});

test("numbers as text", () => {
  const [double, float, fixed] = [0, 1, 2];
  const cases = [
    [0, double, 0, "0e+0"],
    [0.1, double, 0, "1e-1"],
    [1 / 3, double, 0, "3.333333333333333e-1"],
    [1.7976931348623157e308, double, 0, "1.7976931348623157e+308"],
    [5e-324, double, 0, "5e-324"],
    [Math.fround(0.1), float, 0, "1e-1"],
    [Math.fround(1 / 3), float, 0, "3.3333334e-1"],
    [Math.fround(16777217), float, 0, "1.6777216e+7"],
    [12.3456, fixed, 2, "12.35"],
    [0, fixed, 1, "0.0"],
  ];
  for (const [value, form, digits, text] of cases) assert.equal(engine.printNumber(value, form, digits), text);
  const imports = engine.makeNumberImports(new engine.ModuleMemory(new WebAssembly.Memory({ initial: 1 })));
  assert.equal(imports.number_print(0.25, double, 0, 100), 6);
  assert.equal(imports.number_read(100, 6), 0.25);
  assert.equal(imports.math_atan2(1, 1), Math.atan2(1, 1));
});

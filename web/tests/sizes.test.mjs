// What a page loads stays small. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { buildPage } from "../page/build.mjs";
import { bySimilarity, nameBySimilarity } from "../order.mjs";
import { excess, limits, measure, measurePage } from "../sizes.mjs";

test("a chat on a GPU loads no more than the limits", async () => {
  const chat = await measure(new URL("../dist/", import.meta.url));
  for (const [name, [raw, gzip]] of Object.entries(chat.files)) console.log(`${name}: ${raw} bytes, ${gzip} compressed`);
  console.log(`all: ${chat.raw} of ${limits.raw} bytes, ${chat.gzip} of ${limits.gzip} compressed`);
  console.log(`converter: ${chat.converter} of ${limits.converter} bytes`);
  assert.deepEqual(excess(chat), []);
  assert.ok(Object.keys(chat.files).length >= 4, "the scripts were found");
});

test("nor do the page's scripts with the package's and its module", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pteryx-sizes-"));
  await buildPage({ folder });
  const page = await measurePage(pathToFileURL(`${folder}/`));
  for (const [name, [raw, gzip]] of Object.entries(page.files)) console.log(`${name}: ${raw} bytes, ${gzip} compressed`);
  console.log(`all: ${page.raw} of ${limits.raw} bytes, ${page.gzip} of ${limits.gzip} compressed`);
  assert.deepEqual(excess({ ...page, converter: 0 }), []);
  assert.ok(Object.keys(page.files).length >= 6, "the scripts were found");
  await rm(folder, { recursive: true });
});

test("what is larger is named", () => {
  assert.deepEqual(excess({ ...limits, raw: limits.raw + 1 }), [`a chat on a GPU loads ${limits.raw + 1} bytes: expected at most ${limits.raw}`]);
  assert.deepEqual(excess({ ...limits, converter: limits.converter + 1 }), [`a GGUF file loads a converter of ${limits.converter + 1} bytes: expected at most ${limits.converter}`]);
});

test("similar pieces are put side by side, each once, and the same each time", () => {
  let state = 1;
  const pieces = [1, 2, 3].map(() => Uint8Array.from({ length: 5000 }, () => (state = Math.imul(state, 1664525) + 1013904223) >>> 24));
  const near = pieces.map((piece) => piece.map((byte, i) => (i % 50 === 0 ? byte ^ 1 : byte)));
  const order = bySimilarity([...pieces, ...near]);
  assert.deepEqual(order.toSorted(), [0, 1, 2, 3, 4, 5]);
  for (const at of [0, 2, 4]) assert.equal(order[at] % 3, order[at + 1] % 3, String(order));
  assert.deepEqual(bySimilarity([...pieces, ...near]), order);
  assert.deepEqual(bySimilarity([]), []);
});

test("a module whose functions are named anew is the same module", async () => {
  const wasm = await readFile(new URL("../dist/pteryx_convert.wasm", import.meta.url));
  const named = nameBySimilarity(wasm);
  const [before, after] = [new WebAssembly.Module(wasm), new WebAssembly.Module(named)];
  assert.deepEqual(WebAssembly.Module.exports(after), WebAssembly.Module.exports(before));
  assert.deepEqual(WebAssembly.Module.imports(after), WebAssembly.Module.imports(before));
  assert.equal(WebAssembly.Module.customSections(after, "name").length, 1);
  assert.ok(named.subarray(0, wasm.length).equals(wasm), "what it has is as it was");
});

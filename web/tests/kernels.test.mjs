// kernels.bin has the kernels that pteryx.wasm can ask for, with all that they include, and no others: module/gpu_only.cpp and build.mjs leave out the
// same families. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { before, test } from "node:test";
import { inflateSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url);

/** Texts of kernels by their files' names: each is followed by a NUL. */
async function readKernels(name) {
  const texts = inflateSync(await readFile(new URL(name, dist))).toString("utf8").split("\0").slice(0, -1);
  return new Map(Array.from({ length: texts.length / 2 }, (_, i) => [texts[2 * i], texts[2 * i + 1]]));
}
/** What kernels include, each once. */
function included(kernels) {
  return new Set([...kernels.values()].flatMap((text) => Array.from(text.matchAll(/^\s*#include "([^"]+)"/gm), ([, name]) => name)));
}

let models, networks;
before(async () => {
  models = await readKernels("kernels.bin");
  networks = await readKernels("kernels_networks.bin");
});

/** A module names a kernel by its file, in a text that may also be the end of another one. */
const namedBy = async (module, names) => {
  const bytes = await readFile(new URL(module, dist));
  return [...names].filter((name) => bytes.includes(name));
};

test("every kernel that pteryx.wasm names is in kernels.bin, and every other one that is there is included by one", async () => {
  const named = await namedBy("pteryx.wasm", [...models.keys(), ...networks.keys()]);
  assert.ok(named.length > 40, `${named.length} names were found in pteryx.wasm`);
  assert.deepEqual(named.filter((name) => !models.has(name)), [], "asked for, and not there");
  const used = included(models);
  assert.deepEqual([...models.keys()].filter((name) => !named.includes(name) && !used.has(name)), [], "there, and never asked for");
});

test("what kernels include is there", () => {
  assert.deepEqual([...included(models)].filter((name) => !models.has(name)), []);
  const all = new Map([...models, ...networks]);
  assert.deepEqual([...included(all)].filter((name) => !all.has(name)), []);
});

test("both files together have every kernel that pteryx_cpu.wasm names", async () => {
  const packed = await readFile(new URL("../../build-web/generated/pteryx/ops/shaders/kernels.txt", import.meta.url), "utf8");
  const files = packed.split("\0").filter((_, i) => i % 2 === 0).slice(0, -1);
  const named = await namedBy("pteryx_cpu.wasm", files);
  assert.ok(named.length > 60, `${named.length} names were found in pteryx_cpu.wasm`);
  assert.deepEqual(named.filter((name) => !models.has(name) && !networks.has(name)), []);
});

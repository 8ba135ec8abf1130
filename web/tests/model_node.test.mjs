// A model in Node: starting over, stopping, and files that must be the right ones. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
const { loadModel, loadProgram, PteryxError } = await import("../dist/node.js");
const path = fileURLToPath(new URL("tests/fixtures/web/chat.pte", root));
const fails = (code, pattern) => (error) => {
  assert.ok(error instanceof PteryxError, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, pattern);
  return true;
};

test("recover() of a model that works is a fresh start", async () => {
  const model = await loadModel(path, { device: "cpu" });
  const { text } = await model.generate("Hello", { maxTokens: 8 }).result;
  await model.recover();
  const { text: again, cachedTokens } = await model.generate("Hello", { maxTokens: 8 }).result;
  assert.equal(again, text);
  assert.equal(cachedTokens, 0);
  await model.dispose();
  await assert.rejects(model.recover(), fails("invalid-argument", /disposed/));
});

test("a stopped text ends at once on the CPU, on the caller's own thread", async () => {
  const model = await loadModel(path, { device: "cpu" });
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 0);
  const { reason, newTokens } = await model.generate("Hello", { maxTokens: 900, ignoreEnd: true, signal: controller.signal }).result;
  assert.equal(reason, "cancelled");
  assert.ok(newTokens < 900, `${newTokens} tokens`);
  await model.dispose();
});

test("a file's SHA-256 is compared where one is given", async () => {
  const right = createHash("sha256").update(await readFile(path)).digest("hex");
  const model = await loadModel(path, { device: "cpu", sha256: right.toUpperCase() });
  await model.dispose();
  const wrong = right.replace(/^./, (c) => (c === "0" ? "1" : "0"));
  for (const load of [loadModel, loadProgram]) {
    await assert.rejects(load(path, { device: "cpu", sha256: wrong }), fails("invalid-program", new RegExp(`chat\\.pte: SHA-256 is ${right}, expected ${wrong}`)));
  }
  await assert.rejects(loadModel(path, { device: "cpu", sha256: "123" }), fails("invalid-argument", /SHA-256 must be 64 hexadecimal digits, got "123"/));
});

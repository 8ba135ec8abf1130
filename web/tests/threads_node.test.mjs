// Threads of the CPU's kernels in Node. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = new URL("../../", import.meta.url);
const { loadModel, loadProgram, PteryxError } = await import("../dist/node.js");
const path = fileURLToPath(new URL("tests/fixtures/web/chat.pte", root));

async function answer(threads) {
  const model = await loadModel(path, { device: "cpu", ...(threads === undefined ? {} : { threads }) });
  try {
    const { text } = await model.chat([{ role: "user", content: "Tell me something long." }], { maxTokens: 60, ignoreEnd: true }).result;
    return { text, threads: model.info.threads };
  } finally {
    await model.dispose();
  }
}

test("any number of threads gives the same text", async () => {
  const one = await answer(1);
  assert.equal(one.threads, 1);
  assert.ok(one.text.length > 20, one.text);
  for (const threads of [2, 3, 5]) assert.deepEqual(await answer(threads), { text: one.text, threads });
});

test("unless told, there is a thread for each core", async () => {
  const { threads } = await answer(undefined);
  const processors = availableParallelism();
  assert.equal(threads, processors > 4 ? Math.min(Math.ceil(processors / 2), 16) : processors);
  assert.deepEqual((await answer(0)).threads, threads);
});

test("programs have threads, too, one after the other and side by side", async () => {
  const add = fileURLToPath(new URL("tests/fixtures/ops/add.pte", root));
  const programs = await Promise.all([1, 2, 4].map((threads) => loadProgram(add, { device: "cpu", threads })));
  assert.deepEqual(programs.map(({ info }) => info.threads), [1, 2, 4]);
  for (const program of programs) {
    const { output0 } = await program.run("forward", [new Float32Array(231).fill(1), new Float32Array(231).fill(2)]);
    assert.equal(output0.data[230], 3);
    await program.dispose();
  }
});

test("a number that is none is refused", async () => {
  for (const threads of [-1, 1.5, 1000, NaN]) {
    await assert.rejects(loadModel(path, { device: "cpu", threads }), (error) => {
      assert.ok(error instanceof PteryxError);
      assert.equal(error.code, "invalid-argument");
      assert.match(error.message, /threads: expected a number from 0 to 64/);
      return true;
    });
  }
});

test("threads that wait for work do not keep a process alive", async () => {
  const script = `
    const { loadModel } = await import(${JSON.stringify(new URL("../dist/node.js", import.meta.url).href)});
    const model = await loadModel(${JSON.stringify(path)}, { device: "cpu", threads: 3 });
    console.log((await model.generate("Hello", { maxTokens: 3 }).result).newTokens, model.info.threads);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { timeout: 60_000 });
  assert.match(stdout, /^\d 3\n$/);
});

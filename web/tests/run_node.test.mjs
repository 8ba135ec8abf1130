// Running programs in Node: by name, again from the start, cancelled, and refused before the weights are fetched. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { makeGguf } from "./support/gguf.mjs";
import { startServer } from "./support/server.mjs";

const { loadModel, loadProgram, PteryxError } = await import("../dist/node.js");
const fixture = (name) => fileURLToPath(new URL(`../../tests/fixtures/${name}`, import.meta.url));
const fails = (code, pattern) => (error) => {
  assert.ok(error instanceof PteryxError, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, pattern);
  return true;
};

let folder, server;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "pteryx-run-"));
  server = await startServer();
});
after(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

test("inputs and outputs by name are those by position", async () => {
  const program = await loadProgram(fixture("llm/qwen2_like_fp32.pte"), { device: "cpu" });
  const [{ name, inputs, outputs }] = program.info.methods;
  assert.deepEqual([inputs.map((input) => input.name), outputs.map((output) => output.name)], [["tokens", "position"], ["logits"]]);
  const { logits } = await program.run(name, { position: [0], tokens: [5] });
  await program.reset();
  const byPosition = await program.run(name, [[5], [0]]);
  assert.equal(logits.dtype, "f32");
  assert.deepEqual(byPosition[0], logits);
  assert.deepEqual(byPosition.logits, logits);
  await assert.rejects(program.run(name, { tokens: [5] }), fails("invalid-argument", /position/));
  await assert.rejects(program.run(name, { tokens: [5], positions: [0] }), fails("invalid-argument", /position/));
  await program.dispose();
});

test("a language model without caches takes tokens alone", async () => {
  const program = await loadProgram(fixture("ops/embedding.pte"), { device: "cpu" }); // what comes before any layers
  const { logits } = await program.run("forward", { tokens: [1, 2, 3, 4, 5, 6, 7, 8, 9] });
  assert.deepEqual(logits.dims, [1, 9, 24]);
  await program.dispose();
});

test("outputs that are no numbers, or infinite, arrive as such", async () => {
  const file = await readFile(fixture("values/int_output.pte"));
  const seven = Buffer.from(BigInt64Array.of(7n).buffer);
  const double = (value) => {
    const bytes = Buffer.from(file);
    for (let at = bytes.indexOf(seven); at >= 0; at = bytes.indexOf(seven, at + 8)) bytes.writeDoubleLE(value, at);
    return bytes;
  };
  /** The same program with a float in place of its whole number: one byte says which of the two it is. */
  const asFloat = async (bytes) => {
    for (let at = 0; at < bytes.length; at++) {
      if (bytes[at] !== 2) continue;
      const changed = Buffer.from(bytes);
      changed[at] = 4;
      const program = await loadProgram(changed, { device: "cpu" }).catch(() => undefined);
      if (program?.info.methods[0]?.outputs[1]?.kind === "float") return program;
      await program?.dispose();
    }
    return assert.fail("no byte says what the output is");
  };
  for (const value of [NaN, Infinity, -Infinity, 0.5]) {
    const program = await asFloat(double(value));
    assert.deepEqual((await program.run("forward", [new Float32Array(12)])).output1, value);
    await program.dispose();
  }
});

test("elements of another type than the input's are refused, and numbers that are none of its own", async () => {
  const sum = await loadProgram(fixture("ops/add.pte"), { device: "cpu" });
  const ones = new Float32Array(231).fill(1);
  for (const wrong of [new Int32Array(231), new Uint32Array(231), new Float64Array(231), new DataView(new ArrayBuffer(924))]) {
    const refused = fails("invalid-argument", new RegExp(`^input 'input1' of 'forward': expected elements of f32, got ${wrong.constructor.name}$`));
    await assert.rejects(sum.run("forward", [ones, wrong]), refused);
    await assert.rejects(sum.run("forward", [ones, { dtype: "f32", dims: [231], data: wrong }]), refused);
  }
  for (const none of [undefined, null, 5, "ones"]) await assert.rejects(sum.run("forward", none), fails("invalid-argument", /^inputs: expected an array or an object, got /));
  assert.equal((await sum.run("forward", { input0: ones, input1: [...ones] })).output0.data[230], 2);
  await sum.dispose();

  const model = await loadProgram(fixture("llm/qwen2_like_fp32.pte"), { device: "cpu" });
  const [{ name, inputs }] = model.info.methods;
  assert.equal(inputs[0].dtype, "i64");
  for (const [wrong, got] of [[[0.5], "0.5"], [[NaN], "NaN"], [[2 ** 63], "9223372036854776000"], [new Float64Array(1), "Float64Array"], [0.5, "0.5"], [["x"], '"x"']]) {
    await assert.rejects(model.run(name, { tokens: wrong, position: [0] }), fails("invalid-argument", new RegExp(`^input 'tokens' of '${name}': expected elements of i64, got ${got}$`)));
  }
  await model.dispose();
});

test("reset() brings back the state that a program began with", async () => {
  const program = await loadProgram(fixture("state/counter.pte"), { device: "cpu" });
  const [{ name, inputs }] = program.info.methods;
  const run = async () => program.run(name, inputs.map(({ dims }) => new Float32Array(dims.reduce((n, d) => n * d, 1)).fill(1)));
  const first = await run();
  assert.notDeepEqual(await run(), first);
  await program.reset();
  assert.deepEqual(await run(), first);
  await program.dispose();
});

test("a run that is cancelled rejects, and the next one runs", async () => {
  const program = await loadProgram(fixture("ops/add.pte"), { device: "cpu" });
  const inputs = [new Float32Array(231).fill(1), new Float32Array(231).fill(2)];
  await assert.rejects(program.run("forward", inputs, { signal: AbortSignal.abort() }), fails("cancelled", /'run' was cancelled/));
  const controller = new AbortController();
  const waiting = [program.run("forward", inputs), program.run("forward", inputs, { signal: controller.signal })];
  controller.abort();
  await assert.rejects(waiting[1], fails("cancelled", /cancelled/));
  assert.equal((await waiting[0]).output0.data[230], 3);
  assert.equal((await program.run("forward", inputs, { signal: new AbortController().signal })).output0.data[230], 3);
  await program.dispose();
});

test("a run that is cancelled while the CPU computes rejects, and the next one is as if it had not been", async () => {
  const program = await loadProgram(fixture("llm/qwen2_like_fp32.pte"), { device: "cpu", threads: 1 });
  const [{ name, inputs }] = program.info.methods;
  const values = { tokens: new BigInt64Array(inputs[0].dims[1]).fill(5n), position: [0] };
  const { logits } = await program.run(name, values); // takes tenths of a second
  await assert.rejects(program.run(name, values, { signal: AbortSignal.timeout(5) }), fails("cancelled", /'run' was cancelled/));
  assert.deepEqual((await program.run(name, values)).logits, logits);
  await program.dispose();
});

test("what a program lacks is said all at once, before its weights are fetched", async () => {
  const gguf = join(folder, "model.gguf");
  await writeFile(gguf, makeGguf({ hidden: 512, ffn: 2048, layers: 2 }));
  await (await loadModel(gguf, { device: "cpu", cacheFolder: folder })).dispose();
  const body = await readFile(join(folder, (await readdir(folder)).find((name) => name.endsWith(".pte"))));
  assert.ok(body.length > 5e6, `${body.length} bytes`);
  const sent = async (options, code, patterns) => {
    server.file("/model.pte", { body, bytesPerSecond: 2e6 });
    server.clearLog();
    await assert.rejects(loadModel(`${server.origin}/model.pte`, { device: "cpu", ...options }), (error) => patterns.every((pattern) => fails(code, pattern)(error)));
    return server.requests("/model.pte").reduce((sum, request) => sum + request.sent, 0);
  };
  const kTables = 1e6;
  assert.ok((await sent({ memoryLimit: 100_000 }, "out-of-memory", [/100000|97\.7 KiB/])) < kTables);
  for (const [from, to] of [["et_vk.rms_norm", "et_vk.zzz_norm"], ["aten.sigmoid", "aten.zzzmoid"]]) {
    const at = body.indexOf(from);
    assert.ok(at > 0, from);
    body.write(to, at, "latin1");
  }
  const bytes = await sent({}, "unsupported", [/zzz_norm/, /zzzmoid/]);
  assert.ok(bytes < kTables, `${bytes} of ${body.length} bytes were sent`);
});

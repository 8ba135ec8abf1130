// Options of loads and of texts, each by what it changes. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
process.env.VK_ICD_FILENAMES ??= fileURLToPath(new URL(".deps/lavapipe/lvp_icd.json", root));
const { loadModel } = await import("../dist/node.js");
const path = fileURLToPath(new URL("tests/fixtures/web/chat.pte", root));
const kLong = { maxTokens: 20, ignoreEnd: true };
let model;
before(async () => (model = await loadModel(path, { device: "cpu" })));
after(() => model.dispose());

async function generate(options, prompt = "Hello") {
  const generation = model.generate(prompt, { ...kLong, ...options });
  const pieces = [];
  for await (const piece of generation) pieces.push(piece);
  return { ...(await generation.result), pieces, tokens: pieces.map(({ token }) => token) };
}

test("stop: the text ends before the first of the strings", async () => {
  const { text } = await generate({});
  const at = text.indexOf(" ", text.length / 2);
  const word = text.slice(at, at + 4);
  const stopped = await generate({ stop: ["no such text", word] });
  assert.deepEqual([stopped.text, stopped.reason], [text.slice(0, text.indexOf(word)), "stop"]);
});

test("logProbabilities: one for each token, and none unless asked for", async () => {
  const { pieces } = await generate({ logProbabilities: true });
  assert.equal(pieces.length, 20);
  // The most likely of so many words has at least its share.
  for (const { logProbability } of pieces) assert.ok(logProbability <= 0 && logProbability >= -Math.log(model.info.vocabulary), String(logProbability));
  assert.ok((await generate({})).pieces.every((piece) => !("logProbability" in piece)));
});

test("topK, topP and minP: nothing is left but the most likely token", async () => {
  const { text } = await generate({});
  const hot = { temperature: 2, seed: 3 };
  const { text: drawn } = await generate(hot);
  assert.notEqual(drawn, text);
  assert.equal((await generate(hot)).text, drawn, "the seed gives it again");
  assert.notEqual((await generate({ ...hot, seed: 4 })).text, drawn);
  for (const one of [{ topK: 1 }, { topP: 1e-6 }, { minP: 1 }]) assert.equal((await generate({ ...hot, ...one })).text, text, JSON.stringify(one));
});

test("penalties: no token comes twice", async () => {
  const repeats = ({ tokens }) => tokens.length - new Set(tokens).size;
  assert.ok(repeats(await generate({})) > 0);
  for (const penalty of [{ repetitionPenalty: 1000 }, { presencePenalty: 100 }, { frequencyPenalty: 100 }]) {
    assert.equal(repeats(await generate(penalty)), 0, JSON.stringify(penalty));
  }
});

test("shift: a text goes on where the context is full", async () => {
  const more = { maxTokens: model.info.context + 50 };
  const { reason, newTokens } = await generate(more);
  assert.equal(reason, "context");
  assert.ok(newTokens <= model.info.context);
  const shifted = await generate({ ...more, shift: true });
  assert.deepEqual([shifted.reason, shifted.newTokens], ["length", more.maxTokens]);
});

test("onPrompt: called as the prompt is read, part by part", async () => {
  const calls = [];
  const { promptTokens } = await generate({ maxTokens: 1, onPrompt: (...call) => calls.push(call) }, "Tell me something long. ".repeat(20));
  assert.ok(calls.length > 1, String(calls));
  for (const [i, [read, all]] of calls.entries()) {
    assert.equal(all, promptTokens);
    assert.ok(read <= all && (i === 0 || read > calls[i - 1][0]), String(calls));
  }
});

test("kv: the element type of the caches, and so their size", async () => {
  const bytes = async (kv) => {
    const loaded = await loadModel(path, { device: "gpu", precision: "f32", kv });
    const { memoryBytes } = await loaded.device();
    await loaded.dispose();
    return memoryBytes;
  };
  const [narrow, wide] = [await bytes("f16"), await bytes("f32")];
  // Two layers, keys and values of two heads with 16 elements each.
  assert.ok(wide - narrow >= model.info.context * 2 * 2 * 32, `${narrow} and ${wide} bytes`);
});

test("memoryLimit: a model that needs more is refused", async () => {
  await assert.rejects(loadModel(path, { device: "cpu", memoryLimit: 10_000 }), (error) => {
    assert.equal(error.code, "out-of-memory", error.message);
    assert.match(error.message, /10000|9\.8 KiB/);
    return true;
  });
  await (await loadModel(path, { device: "cpu", memoryLimit: 1e8 })).dispose();
});

test("tokenizer: another one in place of the file's", async () => {
  const tokenizer = fileURLToPath(new URL("tests/fixtures/tokenizers/gpt2.json", root));
  const loaded = await loadModel(path, { device: "cpu", tokenizer });
  assert.notDeepEqual(await loaded.encode("Hello there"), await model.encode("Hello there"));
  await loaded.dispose();
});

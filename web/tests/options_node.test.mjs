// Options of loads and of texts, each by what it changes. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = new URL("../../", import.meta.url);
process.env.VK_ICD_FILENAMES ??= fileURLToPath(new URL(".deps/lavapipe/lvp_icd.json", root));
const { inspectProgram, loadModel, loadProgram, PteryxError } = await import("../dist/node.js");
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

test("a seed gives the tokens of the command-line tool, with its log-probabilities", async () => {
  const args = ["generate", path, "--device", "cpu", "--precision", "f32", "-p", "Hello", "-n", "20", "--temperature", "0.9", "--seed", "7", "--ignore-end", "--json", "--log-probabilities"];
  const { stdout } = await promisify(execFile)(fileURLToPath(new URL("../../build/pteryx", import.meta.url)), args);
  const { ids, log_probabilities: wanted } = JSON.parse(stdout);
  const exact = await loadModel(path, { device: "cpu", precision: "f32" });
  const pieces = [];
  for await (const piece of exact.generate("Hello", { maxTokens: 20, temperature: 0.9, topK: 40, topP: 0.95, seed: 7, ignoreEnd: true, logProbabilities: true })) pieces.push(piece);
  await exact.dispose();
  assert.deepEqual(pieces.map(({ token }) => token), ids);
  for (const [i, { logProbability }] of pieces.entries()) assert.ok(Math.abs(logProbability - wanted[i]) < 1e-4, `${i}: ${logProbability}, the tool ${wanted[i]}`);
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
  for (const penalty of [{ repetitionPenalty: 100 }, { presencePenalty: 100 }, { frequencyPenalty: 100 }]) {
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

/** Of an option or an argument: what it may be, and what it is instead, as written and as the message shows it. */
const kPrecisions = "f32 or f16";
const kWrongLoads = [
  ["device", "auto, gpu or cpu", "webgpu", '"webgpu"'], ["precision", kPrecisions, "fp16", '"fp16"'], ["precision", kPrecisions, 16, "16"], ["kv", kPrecisions, null, "null"],
  ["threads", "a number from 0 to 64", "2", '"2"'], ["threads", "a number from 0 to 64", 65, "65"], ["memoryLimit", "a number above 0", "1e9", '"1e9"'],
  ["memoryLimit", "a number above 0", 0, "0"], ["memoryLimit", "a number above 0", NaN, "NaN"], ["sha256", "a string", 5, "5"],
  ["worker", "a boolean", "no", '"no"'], ["cache", "a boolean", 1, "1"], ["cacheLimit", "a number from 0", -1, "-1"], ["cacheFolder", "a string", new URL("file:///tmp"), "URL"],
  ["data", "an array of addresses, files or bytes", "weights.ptd", '"weights.ptd"'], ["data", "an array of addresses, files or bytes", [5], "[5]"],
  ["tokenizer", "an address, a file or bytes", {}, "Object"], ["signal", "an AbortSignal", new AbortController(), "AbortController"], ["onProgress", "a function", true, "true"],
];
const kWhole = "a whole number from 0";
const kWrongTexts = [
  ["maxTokens", kWhole, "200", '"200"'], ["maxTokens", kWhole, NaN, "NaN"], ["maxTokens", kWhole, -1, "-1"], ["maxTokens", kWhole, 0.5, "0.5"], ["maxTokens", kWhole, null, "null"],
  ["temperature", "a number from 0 to 100", "hot", '"hot"'], ["temperature", "a number from 0 to 100", Infinity, "Infinity"], ["temperature", "a number from 0 to 100", -1, "-1"], ["temperature", "a number from 0 to 100", 1n, "1"],
  ["topK", kWhole, 1.5, "1.5"], ["topP", "a number from 0 to 1", 95, "95"], ["minP", "a number from 0 to 1", [0.1], "[0.1]"], ["seed", kWhole, "x".repeat(200), `"${"x".repeat(79)}...`],
  ["repetitionPenalty", "a number from 0.01 to 100", 0, "0"], ["presencePenalty", "a number from -100 to 100", {}, "Object"], ["frequencyPenalty", "a number from -100 to 100", true, "true"],
  ["stop", "an array of strings", "end", '"end"'], ["stop", "an array of strings", [/end/], "[/end/]"], ["logProbabilities", "a boolean", 1, "1"], ["ignoreEnd", "a boolean", "yes", '"yes"'],
  ["shift", "a boolean", 0, "0"], ["signal", "an AbortSignal", "stop", '"stop"'], ["onPrompt", "a function", {}, "Object"],
];
const refuses = (call, name, expected, got) =>
  assert.rejects(call, (error) => {
    assert.ok(error instanceof PteryxError, String(error));
    assert.deepEqual([error.code, error.message], ["invalid-argument", `${name}: expected ${expected}, got ${got}`]);
    return true;
  });

test("options of a load that cannot be are refused", async () => {
  for (const [name, expected, value, got] of kWrongLoads) {
    for (const load of [loadModel, loadProgram, inspectProgram]) await refuses(load(path, { device: "cpu", [name]: value }), name, expected, got);
  }
  for (const [name, , value] of kWrongLoads) await assert.rejects(model.recover({ [name]: value }), { code: "invalid-argument" });
  for (const load of [loadModel, loadProgram, inspectProgram]) {
    await assert.rejects(load(path, { devise: "cpu" }), { code: "invalid-argument", message: "there is no option 'devise'" });
    await refuses(load(path, null), "options", "an object", "null");
    await refuses(load(path, "cpu"), "options", "an object", '"cpu"');
    for (const [input, got] of [[undefined, "undefined"], ["", '""'], [{ url: path }, "Object"], [[path], `[${path}]`]]) {
      if (got.length < 80) await refuses(load(input), "input", "an address, a file or bytes", got);
    }
  }
});

test("options of a text that cannot be are refused, by its promise and by its loop", async () => {
  for (const [name, expected, value, got] of kWrongTexts) {
    await refuses(model.generate("Hello", { [name]: value }).result, name, expected, got);
    await refuses(model.chat([{ role: "user", content: "Hello" }], { [name]: value })[Symbol.asyncIterator]().next(), name, expected, got);
  }
  for (const [prompt, got] of [[undefined, "undefined"], [5, "5"], [{ text: "Hello" }, "Object"], [[1, 2.5], "[1,2.5]"], [[1n], "[1]"]]) await refuses(model.generate(prompt).result, "prompt", "a string or an array of token ids", got);
  for (const [messages, got] of [["Hello", '"Hello"'], [undefined, "undefined"], [[{ role: "user" }], "[[object Object]]"]]) {
    await refuses(model.chat(messages).result, "messages", "an array of messages with the strings role and content", got);
  }
  await refuses(model.generate("Hello", null).result, "options", "an object", "null");
  await assert.rejects(model.generate("Hello", { maxToken: 5 }).result, { code: "invalid-argument", message: "there is no option 'maxToken'" });
});

test("what is to be encoded and decoded is a text and token ids", async () => {
  for (const [text, got] of [[undefined, "undefined"], [["Hello"], "[Hello]"]]) await refuses(model.encode(text), "text", "a string", got);
  for (const [tokens, got] of [[Uint32Array.of(1), "Uint32Array"], [[0.5], "[0.5]"], ["1", '"1"']]) await refuses(model.decode(tokens), "tokens", "an array of token ids", got);
});

test("options that are unset, or at the end of what they may be, are taken", async () => {
  const { text } = await generate({});
  const unset = Object.fromEntries([...kWrongTexts.map(([name]) => [name, undefined]), ["maxTokens", 20], ["ignoreEnd", true]]);
  assert.equal((await generate(unset)).text, text);
  assert.equal((await generate({ topK: Infinity, topP: 1, minP: 0, seed: 2 ** 53, stop: [], repetitionPenalty: 1 })).text, text);
  assert.deepEqual([(await generate({ maxTokens: 0 })).newTokens, (await generate({ maxTokens: Infinity })).reason], [0, "context"]);
  const program = await loadProgram(path, { ...Object.fromEntries(kWrongLoads.map(([name]) => [name, undefined])), device: "cpu", threads: 0, memoryLimit: Infinity });
  await program.dispose();
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

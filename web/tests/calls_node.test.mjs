// Calls that are stopped or fail, in Node: what still runs ends, what was opened is closed, and what can be used stays usable. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { copyFile, mkdtemp, readdir, readlink, rename, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const { inspectProgram, loadModel, loadProgram, PteryxError } = await import("../dist/node.js");
const chat = fileURLToPath(new URL("../../tests/fixtures/web/chat.pte", import.meta.url));
const add = fileURLToPath(new URL("../../tests/fixtures/ops/add.pte", import.meta.url));
const kEndless = { ignoreEnd: true, shift: true };
let folder;
before(async () => (folder = await mkdtemp(join(tmpdir(), "pteryx-calls-"))));
after(() => rm(folder, { recursive: true }));

const fails = (code, pattern) => (error) => {
  assert.ok(error instanceof PteryxError, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, pattern);
  return true;
};

test("dispose() stops the text that runs, and those that wait", { timeout: 60_000 }, async () => {
  const model = await loadModel(chat, { device: "cpu" });
  const running = model.generate("Hello", kEndless);
  const waiting = model.generate("Hello", kEndless);
  let pieces = 0;
  for await (const _ of running) {
    if (++pieces < 3) continue;
    await model.dispose();
    break;
  }
  assert.equal((await running.result).reason, "cancelled");
  assert.deepEqual([(await waiting.result).reason, (await waiting.result).newTokens], ["cancelled", 0]);
  await assert.rejects(model.encode("Hello"), fails("invalid-argument", /disposed/));
});

test("a call that is cancelled while it waits ends at once", { timeout: 60_000 }, async () => {
  const model = await loadModel(chat, { device: "cpu" });
  const stop = new AbortController();
  let over = false;
  const running = model.generate("Hello", { ...kEndless, signal: stop.signal });
  running.result.then(() => (over = true));
  const cancel = new AbortController();
  const text = model.generate("Hello", { ...kEndless, signal: cancel.signal });
  const { signal } = cancel;
  const calls = {
    load: model.recover({ signal }), createSequence: model.createSequence({ signal }), encode: model.encode("Hello", { signal }), decode: model.decode([1], { signal }),
    device: model.device({ signal }),
  };
  cancel.abort();
  for (const [name, call] of Object.entries(calls)) await assert.rejects(call, fails("cancelled", new RegExp(`'${name}' was cancelled`)));
  assert.deepEqual([(await text.result).reason, (await text.result).text], ["cancelled", ""]);
  assert.equal(over, false, "the text before them goes on");
  assert.equal(model.sequences.size, 0, "none is left behind");
  stop.abort();
  await running.result;
  assert.equal((await model.generate("Hello", { maxTokens: 2, ignoreEnd: true }).result).newTokens, 2);
  await model.dispose();
});

/** How often this process has a file open. */
async function openFiles(path) {
  const targets = await Promise.all((await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
  return targets.filter((target) => target === path).length;
}
async function closed(path) {
  for (let tries = 0; tries < 50 && (await openFiles(path)) > 0; tries++) await sleep(20);
  assert.equal(await openFiles(path), 0);
}

test("dispose() closes all files", async () => {
  const tokenizer = fileURLToPath(new URL("../../tests/fixtures/tokenizers/gpt2.json", import.meta.url));
  const model = await loadModel(chat, { device: "cpu", tokenizer });
  const program = await loadProgram(add, { device: "cpu" });
  await model.generate([1, 2, 3], { maxTokens: 2, ignoreEnd: true }).result;
  assert.ok((await openFiles(chat)) > 0);
  await model.dispose();
  await program.dispose();
  for (const path of [chat, tokenizer, add]) await closed(path);
  await inspectProgram(chat, { device: "cpu" });
  await closed(chat);
});

test("a load that fails closes its files", async () => {
  const half = join(folder, "half.pte");
  await copyFile(add, half);
  await truncate(half, 500);
  await assert.rejects(loadProgram(half, { device: "cpu" }), fails("invalid-program", /half\.pte/));
  await assert.rejects(inspectProgram(half, { device: "cpu" }), fails("invalid-program", /half\.pte/));
  await closed(half);
  await assert.rejects(loadModel(chat, { device: "cpu", memoryLimit: 1000 }), fails("out-of-memory", /1000/));
  await closed(chat);
  await assert.rejects(loadProgram(add, { device: "cpu", data: [chat, join(folder, "missing.ptd")] }), fails("io", /missing\.ptd: no such file/));
  await closed(add);
  await closed(chat);
  await assert.rejects(loadModel(chat, { device: "cpu", tokenizer: join(folder, "missing.json") }), fails("io", /missing\.json: no such file/));
  await closed(chat);
});

test("what a callback throws rejects its call, and nothing else", async () => {
  const boom = new Error("boom");
  const thrower = () => {
    throw boom;
  };
  const isBoom = (error) => error === boom;
  await assert.rejects(loadModel(chat, { device: "cpu", onProgress: thrower }), isBoom);
  const last = ({ fraction }) => fraction === 1 && thrower();
  await assert.rejects(loadProgram(add, { device: "cpu", onProgress: last }), isBoom);

  const model = await loadModel(chat, { device: "cpu" });
  const prompt = "Tell me something long. ".repeat(20);
  const { text } = await model.generate(prompt, { maxTokens: 4, ignoreEnd: true }).result;
  const generation = model.generate(`Now ${prompt}`, { maxTokens: 4, onPrompt: thrower });
  await assert.rejects(async () => {
    for await (const piece of generation) assert.fail(`a piece: ${piece.text}`);
  }, isBoom);
  await assert.rejects(generation.result, isBoom);
  assert.equal((await model.generate(prompt, { maxTokens: 4, ignoreEnd: true }).result).text, text);
  await assert.rejects(model.recover({ onProgress: thrower }), isBoom);
  await model.recover();
  assert.equal((await model.generate(prompt, { maxTokens: 4, ignoreEnd: true }).result).text, text);
  await model.dispose();
});

test("a text has one loop at a time", { timeout: 60_000 }, async () => {
  const model = await loadModel(chat, { device: "cpu" });
  const generation = model.generate("Hello", { maxTokens: 5, ignoreEnd: true });
  const read = async () => {
    let pieces = 0;
    for await (const _ of generation) pieces++;
    return pieces;
  };
  const [first, second] = await Promise.allSettled([read(), read()]);
  assert.equal(first.value, 5);
  assert.ok(fails("invalid-argument", /another loop/)(second.reason));
  assert.equal(await read(), 0, "afterwards there is nothing left");
  await model.dispose();
});

test("half a character in a message is the replacement character, as in any text", async () => {
  const model = await loadModel(chat, { device: "cpu" });
  const answer = async (content, options) => (await model.chat([{ role: "user", content }], { maxTokens: 8, ignoreEnd: true, ...options }).result).text;
  const half = "Hello \ud83d"; // as slice() leaves it
  assert.equal(await answer(half), await answer("Hello \ufffd"));
  assert.equal((await model.generate(half, { maxTokens: 8, ignoreEnd: true, stop: ["\udc00"] }).result).newTokens, 8);
  assert.deepEqual(await model.encode(half), await model.encode("Hello \ufffd"));
  await model.dispose();
});

test("sequences can be made and freed as often as one likes", async () => {
  const model = await loadModel(chat, { device: "cpu" });
  // Numbers of objects have 12 bits for how often their place was used.
  for (let i = 0; i < 4200; i++) await (await model.createSequence()).dispose();
  const sequence = await model.createSequence();
  const options = { maxTokens: 4, ignoreEnd: true };
  assert.equal((await sequence.generate("Hello", options).result).text, (await model.generate("Hello", options).result).text);
  await model.dispose();
});

test("sequences that are made, used or disposed of during a recovery are what they would be after it", async () => {
  const model = await loadModel(chat, { device: "cpu" });
  const { connection } = model;
  const created = [];
  const { call } = connection;
  connection.call = (name, args, ...rest) => {
    if (name === "createSequence") created.push(args[0]);
    return call.call(connection, name, args, ...rest);
  };
  const options = { maxTokens: 6, ignoreEnd: true };
  const textOf = async (sequence) => (await sequence.generate("Hello", options).result).text;
  const [kept, gone] = [await model.createSequence(), await model.createSequence()];
  const early = model.createSequence(); // not there yet
  const text = await textOf(kept);
  created.length = 0;
  const recovery = model.recover();
  const late = model.createSequence();
  const during = textOf(kept);
  const disposed = gone.dispose();
  await recovery;
  await disposed;
  assert.equal(await during, text);
  for (const sequence of [kept, await early, await late]) assert.equal(await textOf(sequence), text);
  await assert.rejects(textOf(gone), fails("invalid-argument", /the sequence was disposed of/));
  assert.deepEqual(created, [kept.id, gone.id, (await early).id, (await late).id], "each once");
  await model.dispose();
});

test("a sequence that could not be made is not brought back by a recovery either", async () => {
  const model = await loadModel(chat, { device: "cpu" });
  const { connection } = model;
  const { call } = connection;
  const calls = [];
  let fail = true;
  connection.call = async (name, args, ...rest) => {
    calls.push(`${name} ${args[0]}`);
    if (name === "createSequence" && fail) {
      fail = false;
      throw new PteryxError("out-of-memory", "no room");
    }
    return call.call(connection, name, args, ...rest);
  };
  const making = model.createSequence();
  const recovery = model.recover();
  await assert.rejects(making, fails("out-of-memory", /no room/));
  await recovery;
  assert.equal(model.sequences.size, 0);
  // The recovery had asked for it before it failed: it is freed behind that.
  assert.ok(calls.indexOf("freeSequence 1") > calls.lastIndexOf("createSequence 1"), calls.join(", "));
  assert.equal((await model.generate("Hello", { maxTokens: 2, ignoreEnd: true }).result).newTokens, 2);
  await model.dispose();
});

test("a sequence that a recovery could not bring back says so, and comes back with the next one", async () => {
  const model = await loadModel(chat, { device: "cpu" });
  const sequences = [await model.createSequence(), await model.createSequence(), await model.createSequence()];
  const options = { maxTokens: 6, ignoreEnd: true };
  const texts = () => Promise.all(sequences.map(async (sequence, i) => (await sequence.generate(`Hello ${i}`, options).result).text));
  const before = await texts();
  const { connection } = model;
  const { call } = connection;
  let left = 1;
  connection.call = async (name, ...rest) => {
    if (name === "createSequence" && left-- === 0) throw new PteryxError("out-of-memory", "no room");
    return call.call(connection, name, ...rest);
  };
  await assert.rejects(model.recover(), fails("out-of-memory", /no room/));
  const [kept, lost, last] = sequences;
  assert.equal((await kept.generate("Hello 0", options).result).text, before[0]);
  assert.equal((await last.generate("Hello 2", options).result).text, before[2]);
  await assert.rejects(lost.generate("Hello", options).result, fails("device-lost", /recover\(\) has not restored it; if that failed, call it again/));
  await last.dispose();
  sequences.pop();
  await model.recover();
  assert.deepEqual(await texts(), before.slice(0, 2));
  await model.dispose();
});

test("after a recovery that failed, calls say so, and the next recovery may work", async () => {
  const path = join(folder, "model.pte");
  const away = join(folder, "away.pte");
  await copyFile(chat, path);
  const model = await loadModel(path, { device: "cpu" });
  const second = await model.createSequence();
  const options = { maxTokens: 6, ignoreEnd: true };
  const { text } = await second.generate("Hello", options).result;
  await rename(path, away);
  for (let tries = 0; tries < 2; tries++) {
    await assert.rejects(model.recover(), fails("io", /no such file/));
    await assert.rejects(second.generate("Hello", options).result, fails("device-lost", /recover\(\)/));
    await assert.rejects(model.encode("Hello"), fails("device-lost", /recover\(\)/));
  }
  await rename(away, path);
  await model.recover();
  assert.equal((await second.generate("Hello", options).result).text, text);
  await model.dispose();
  await assert.rejects(model.encode("Hello"), fails("invalid-argument", /disposed/));
});

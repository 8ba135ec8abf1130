// GGUF files in Node: they become the programs that the command-line tool makes, and models that run. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { sha256 } from "./support/bytes.mjs";
import { makeGguf } from "./support/gguf.mjs";
import { kFiles, kProgramHashes } from "./support/gguf_programs.mjs";
import { startServer } from "./support/server.mjs";

const { loadModel, PteryxError } = await import("../dist/node.js");
let folder, cacheFolder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "pteryx-convert-"));
  cacheFolder = join(folder, "cache");
});
after(() => rm(folder, { recursive: true, force: true }));
afterEach(() => rm(cacheFolder, { recursive: true, force: true }));

async function save(name, bytes) {
  await writeFile(join(folder, name), bytes);
  return join(folder, name);
}
const programs = async () => (await readdir(cacheFolder).catch(() => [])).filter((name) => name.endsWith(".pte"));
const fails = (code, pattern) => (error) => {
  assert.ok(error instanceof PteryxError, String(error));
  assert.equal(error.code, code, error.message);
  assert.match(error.message, pattern);
  return true;
};

/** Loads a model and says what it said on the way. */
async function load(input, options = {}) {
  const seen = [];
  const model = await loadModel(input, { device: "cpu", cacheFolder, onProgress: (p) => seen.push(p), ...options });
  return { model, seen, phases: new Set(seen.map((p) => p.phase)) };
}

for (const [name, hash] of Object.entries(kProgramHashes)) {
  test(`${name}: the program is the one that pteryx convert makes`, async () => {
    const { model, phases } = await load(await save(name, kFiles[name]()));
    assert.ok(phases.has("convert"));
    await model.dispose();
    const [file] = await programs();
    assert.equal(sha256(await readFile(join(cacheFolder, file))), hash);
  });
}

test("the tokenizer and the chat template come along, and the second load converts nothing", async () => {
  const path = await save("chat.gguf", makeGguf());
  const first = await load(path);
  assert.equal(first.model.info.hasTokenizer, true);
  assert.equal(first.model.info.hasChatTemplate, true);
  assert.equal(first.model.info.name, path);
  assert.deepEqual(await first.model.encode("<|im_start|>the"), [256, "t".charCodeAt(0), 259]);
  const { text } = await first.model.chat([{ role: "user", content: "Hello" }], { maxTokens: 8 }).result;
  await first.model.dispose();
  const fractions = first.seen.map((p) => p.fraction);
  assert.deepEqual(fractions, [...fractions].sort((a, b) => a - b));
  const converted = first.seen.filter((p) => p.phase === "convert");
  assert.ok(converted.every((p) => p.doneBytes <= p.totalBytes && p.totalBytes > 0));

  const second = await load(path);
  assert.ok(!second.phases.has("convert"));
  assert.equal((await second.model.chat([{ role: "user", content: "Hello" }], { maxTokens: 8 }).result).text, text);
  await second.model.dispose();
  assert.equal((await programs()).length, 1);
});

test("another content, and a kept program that was cut short, are converted again", async () => {
  const path = await save("changing.gguf", makeGguf());
  await (await load(path)).model.dispose();
  await save("changing.gguf", makeGguf({ layers: 1 }));
  const changed = await load(path);
  assert.ok(changed.phases.has("convert"));
  await changed.model.dispose();
  for (const name of await programs()) await truncate(join(cacheFolder, name), 1000);
  const again = await load(path);
  assert.ok(again.phases.has("convert"));
  await again.model.dispose();
});

test("bytes and blobs are known by all of their content", async () => {
  // Where they differ, they are past their first megabyte.
  const tuned = [1, 2].map((seed) => makeGguf({ layers: 1, seed, extra: { "general.description": "-".repeat(2 ** 20) } }));
  for (const [kind, input] of Object.entries({ bytes: (bytes) => new Uint8Array(bytes), blob: (bytes) => new Blob([bytes]) })) {
    for (const converts of [true, false]) {
      for (const [i, bytes] of tuned.entries()) {
        const { model, phases } = await load(input(bytes));
        await model.dispose();
        assert.equal(phases.has("convert"), converts && kind === "bytes", `${kind} ${i}`);
      }
    }
  }
  const hashes = await Promise.all((await programs()).map(async (file) => sha256(await readFile(join(cacheFolder, file)))));
  assert.equal(new Set(hashes).size, 2);
});

test("bytes, blobs and addresses are converted as files are, without a folder for them", async () => {
  const bytes = makeGguf({ type: "q8_0" });
  const server = await startServer();
  server.file("/model.gguf", { body: bytes });
  const { model: same } = await load(await save("same.gguf", bytes));
  const want = await same.generate("abc", { maxTokens: 6 }).result;
  await same.dispose();
  try {
    for (const input of [new Uint8Array(bytes), new Blob([bytes]), `${server.origin}/model.gguf`]) {
      const { model, phases } = await load(input, { cacheFolder: undefined });
      assert.ok(phases.has("convert"));
      assert.equal((await model.generate("abc", { maxTokens: 6 }).result).text, want.text);
      await model.dispose();
    }
  } finally {
    await server.close();
  }
});

test("files that cannot be converted are refused with the converter's reason, and leave nothing", async () => {
  const whole = makeGguf();
  const cases = [
    ["cut.gguf", whole.subarray(0, whole.length - 4000), "invalid-program", /GGUF: tensor '.*' has .* bytes at byte .*\n {2}while reading .*cut\.gguf/],
    ["header.gguf", whole.subarray(0, 200), "invalid-program", /GGUF: .*header\.gguf/s],
    ["old.gguf", Buffer.concat([Buffer.from("GGUF\x01\0\0\0"), whole.subarray(8)]), "unsupported", /GGUF version 1 is not supported \(2 and 3 are\)/],
    ["other.gguf", makeGguf({ extra: { "general.architecture": "mamba" } }), "unsupported", /architecture 'mamba' is not supported \(llama, qwen2, qwen3 are\)/],
    ["template.gguf", makeGguf({ extra: { "tokenizer.chat_template": "{% for %}" } }), "invalid-program", /chat template/],
    ["part.gguf", makeGguf({ extra: { "split.no": 0, "split.count": 3, "split.tensors.count": 20 } }), "unsupported", /part 1 of 3 of a split model: join the parts first/],
  ];
  for (const [name, bytes, code, pattern] of cases) {
    await assert.rejects(load(await save(name, bytes)), fails(code, pattern), name);
    assert.deepEqual(await readdir(cacheFolder).catch(() => []), [], name);
  }
});

test("a conversion that is stopped leaves nothing", async () => {
  const path = await save("stopped.gguf", makeGguf({ hidden: 256, ffn: 1024, layers: 2 }));
  const controller = new AbortController();
  let progress = 0;
  const onProgress = ({ phase, doneBytes }) => phase === "convert" && doneBytes > 0 && ++progress && controller.abort();
  await assert.rejects(load(path, { signal: controller.signal, onProgress }), fails("cancelled", /stopped\.gguf: cancelled/));
  assert.ok(progress > 0);
  assert.deepEqual(await readdir(cacheFolder).catch(() => []), []);
});

test("the wrong SHA-256 is refused before anything counts", async () => {
  const bytes = makeGguf({ layers: 1 });
  const path = await save("hashed.gguf", bytes);
  const right = sha256(bytes);
  await assert.rejects(load(path, { sha256: right.replace(/^./, (c) => (c === "0" ? "1" : "0")) }), fails("invalid-program", /SHA-256 is/));
  assert.deepEqual(await readdir(cacheFolder).catch(() => []), []);
  await (await load(path, { sha256: right })).model.dispose();
  const kept = await load(path, { sha256: right });
  assert.ok(!kept.phases.has("convert"));
  await kept.model.dispose();
});

test("a folder that cannot be written is named", async () => {
  const path = await save("unwritable.gguf", makeGguf({ layers: 1 }));
  await assert.rejects(load(path, { cacheFolder: path }), fails("io", /unwritable\.gguf/));
  assert.ok((await stat(path)).isFile());
});

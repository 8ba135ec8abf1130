// GGUF files in a browser: converted once, whole or not at all, found again by what they are. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { launchBrowser } from "./support/browser.mjs";
import { bundle } from "./support/bundle.mjs";
import { sha256 } from "./support/bytes.mjs";
import { makeGguf } from "./support/gguf.mjs";
import { kFiles, kLarge, kProgramHashes } from "./support/gguf_programs.mjs";
import { inPage, serveRunner } from "./support/in_page.mjs";
import { startServer } from "./support/server.mjs";

const fixture = kFiles["llama.gguf"]();
const converter = await readFile(new URL("../dist/pteryx_convert.wasm", import.meta.url));
const large = kFiles["large.gguf"]();
let bundled, server, browser, page;

before(async () => {
  bundled = await bundle(["src/source/index.ts", "src/convert/gguf.ts"]);
  server = await startServer({ root: bundled.folder });
  serveRunner(server);
  server.file("/pteryx_convert.wasm", { body: converter, type: "application/wasm" });
  server.file("/llama.gguf", { body: fixture });
  server.file("/large.gguf", { body: large });
  browser = await launchBrowser({ args: ["--host-resolver-rules=MAP pteryx.test 127.0.0.1"] });
  page = await browser.open(server.origin);
});
after(async () => {
  await browser?.close();
  await server?.close();
  await bundled?.remove();
});
beforeEach(async () => {
  await run("page", ({ cache }) => cache.clear());
  server.clearLog();
});

const kModules = ["/source.js", "/gguf.js"];
function run(thread, task, argument, on = page) {
  return inPage(on, { thread, modules: kModules }, task, argument);
}
/** Opens the program of an address, or of what is there as another kind of input, and says what it is. */
async function open({ openProgram }, { url, as = "address", file, sha256: expected, cache = true, memoryLimit, abortAt }) {
  const seen = [];
  const controller = new AbortController();
  const bytes = as === "address" ? undefined : await (await fetch(url)).arrayBuffer();
  const inputs = {
    address: () => url, file: () => new File([bytes], file.name, { lastModified: file.modified }), bytes: () => bytes, blob: () => new Blob([bytes]),
    "blob address": () => URL.createObjectURL(new Blob([bytes])),
  };
  const source = await openProgram(inputs[as](), {
    cache, converter: new URL("/pteryx_convert.wasm", self.location.origin), signal: controller.signal, ...(expected && { sha256: expected }),
    ...(memoryLimit && { memoryLimit }),
    onConvert: (done, total) => {
      seen.push([done, total]);
      if (abortAt !== undefined && done >= abortAt * total) controller.abort();
    },
  });
  const program = await source.read(0, source.size);
  const digest = await crypto.subtle?.digest("SHA-256", program);
  const hash = Array.from(new Uint8Array(digest ?? []), (byte) => byte.toString(16).padStart(2, "0")).join("");
  source.close();
  return { hash, name: source.name, cached: source.cached, notes: source.notes, seen };
}
const list = (on = page) => run("page", ({ cache }) => cache.list(), undefined, on);
const wasmRequests = () => server.requests("/pteryx_convert.wasm").length;

for (const thread of ["worker", "page"]) {
  test(`${thread}: the program is the one that pteryx convert makes, and the next load finds it`, async () => {
    const url = `${server.origin}/llama.gguf`;
    const first = await run(thread, open, { url });
    assert.equal(first.hash, kProgramHashes["llama.gguf"]);
    assert.equal(first.name, url);
    assert.deepEqual(first.notes, []);
    assert.deepEqual(first.seen.at(-1), [fixture.length, fixture.length]);
    assert.deepEqual(first.seen.map(([done]) => done), first.seen.map(([done]) => done).toSorted((a, b) => a - b));
    const kept = await list();
    assert.deepEqual(kept.map(({ url: key, kind, complete }) => [key, kind, complete]), [[url, "conversion", true]], "the download is not kept beside it");
    server.clearLog();
    const second = await run(thread, open, { url });
    assert.deepEqual([second.hash, second.seen, second.cached], [first.hash, [], true]);
    assert.equal(wasmRequests(), 0);
    assert.equal(server.requests("/llama.gguf").length, 1);
    assert.deepEqual((await list()).map(({ kind }) => kind), ["conversion"], "and no download was begun");
  });
}

test("a file is known by its name, size and date", async () => {
  const url = `${server.origin}/llama.gguf`;
  const first = await run("worker", open, { url, as: "file", file: { name: "mine.gguf", modified: 1000 } });
  assert.equal(first.hash, kProgramHashes["llama.gguf"]);
  assert.deepEqual((await run("worker", open, { url, as: "file", file: { name: "mine.gguf", modified: 1000 } })).seen, []);
  assert.notDeepEqual((await run("worker", open, { url, as: "file", file: { name: "mine.gguf", modified: 2000 } })).seen, []);
  assert.deepEqual((await list()).map((entry) => entry.url), ["mine.gguf"], "the newer one replaces the older one");
});

test("bytes and blobs are known by all of their content", async () => {
  const url = (seed) => `${server.origin}/tuned-${seed}.gguf`;
  // Where they differ, they are past their first megabyte.
  for (const seed of [1, 2]) server.file(`/tuned-${seed}.gguf`, { body: makeGguf({ layers: 1, seed, extra: { "general.description": "-".repeat(2 ** 20) } }) });
  const hashes = await Promise.all([1, 2].map(async (seed) => (await run("worker", open, { url: url(seed), cache: false })).hash));
  assert.notEqual(hashes[0], hashes[1]);
  for (const as of ["bytes", "blob", "blob address"]) {
    for (const seed of [1, 2]) assert.equal((await run("worker", open, { url: url(seed), as })).hash, hashes[seed - 1], `${as} ${seed}`);
    const again = await run("worker", open, { url: url(2), as });
    assert.deepEqual([again.hash, again.seen], [hashes[1], []], as);
  }
});

test("bytes in a page that may not store: converted, and that is said", async () => {
  const origin = server.origin.replace("127.0.0.1", "pteryx.test");
  const insecure = await browser.open(origin);
  const { notes, cached } = await run("worker", open, { url: `${origin}/llama.gguf`, as: "bytes" }, insecure);
  assert.deepEqual([notes, cached], [["The conversion is not kept for the next visit: the page is not served over HTTPS."], false]);
  await insecure.close();
});

test("another version on the server is converted anew; without a server, the last one is used and that is said", async () => {
  const url = `${server.origin}/changing.gguf`;
  server.file("/changing.gguf", { body: makeGguf({ layers: 1 }), etag: '"1"' });
  const first = await run("worker", open, { url });
  server.file("/changing.gguf", { body: makeGguf({ layers: 1, seed: 2 }), etag: '"2"' });
  const second = await run("worker", open, { url });
  assert.notEqual(second.hash, first.hash);
  assert.equal((await list()).length, 1);
  server.file("/changing.gguf").status = 503;
  const third = await run("worker", open, { url });
  assert.equal(third.hash, second.hash);
  assert.match(third.notes.join(), /may be out of date.*503/);
});

test("servers that send only the whole file are asked for its version, and no more", async () => {
  for (const how of [{ ranges: false }, { encoding: "chunked" }]) {
    const path = `/whole-${how.encoding ?? "plain"}.gguf`;
    const url = server.origin + path;
    server.file(path, { body: large, etag: '"1"', ...how });
    assert.equal((await run("worker", open, { url })).hash, kProgramHashes["large.gguf"]);
    server.clearLog();
    server.file(path).bytesPerSecond = large.length / 4;
    // As of a file that is larger than what may be held in memory.
    const again = await run("worker", open, { url, memoryLimit: 1 });
    assert.deepEqual([again.hash, again.seen, again.notes], [kProgramHashes["large.gguf"], [], []]);
    assert.ok(server.requests(path).every(({ sent }) => sent < large.length / 2));
    server.file(path, { body: fixture, etag: '"2"', ...how });
    const changed = await run("worker", open, { url, memoryLimit: how.encoding ? 64 << 20 : 1 });
    assert.deepEqual([changed.hash, changed.notes], [kProgramHashes["llama.gguf"], []]);
  }
});

test("a kept conversion of a known SHA-256 needs no server", async () => {
  const url = `${server.origin}/llama.gguf`;
  await assert.rejects(run("worker", open, { url, sha256: "0".repeat(64) }), { code: "invalid-program", message: /SHA-256 is/ });
  assert.deepEqual((await list()).filter((entry) => entry.kind === "conversion"), []);
  await run("worker", open, { url, sha256: sha256(fixture) });
  server.clearLog();
  const again = await run("worker", open, { url, sha256: sha256(fixture) });
  assert.equal(again.hash, kProgramHashes["llama.gguf"]);
  assert.deepEqual(server.requests("/llama.gguf"), []);
});

test("what has no version is converted each time, and that is said", async () => {
  server.file("/unversioned.gguf", { body: fixture, etag: null });
  const { hash, notes, cached } = await run("worker", open, { url: `${server.origin}/unversioned.gguf` });
  assert.equal(hash, kProgramHashes["llama.gguf"]);
  assert.equal(cached, false);
  assert.match(notes.join(), /not kept for the next visit: the server sends neither ETag nor Last-Modified/);
  assert.deepEqual(await list(), []);
});

test("without the cache nothing is kept", async () => {
  const { hash } = await run("worker", open, { url: `${server.origin}/llama.gguf`, cache: false });
  assert.equal(hash, kProgramHashes["llama.gguf"]);
  assert.deepEqual(await list(), []);
});

test("a wrong header is refused before the file is fetched, a cut file with the converter's reason", async () => {
  const whole = makeGguf({ ...kLarge, extra: { "general.architecture": "mamba" } });
  server.file("/mamba.gguf", { body: whole, bytesPerSecond: 8_000_000 });
  await assert.rejects(run("worker", open, { url: `${server.origin}/mamba.gguf` }), { name: "PteryxError", code: "unsupported", message: /architecture 'mamba'/ });
  const sent = server.requests("/mamba.gguf").reduce((sum, request) => sum + request.sent, 0);
  assert.ok(sent < whole.length / 2, `${sent} of ${whole.length} bytes`);
  server.file("/cut.gguf", { body: fixture.subarray(0, fixture.length - 1000) });
  await assert.rejects(run("worker", open, { url: `${server.origin}/cut.gguf` }), { code: "invalid-program", message: /GGUF: tensor .*while reading http.*cut\.gguf/s });
  assert.deepEqual((await list()).filter((entry) => entry.kind === "conversion"), []);
});

test("a kept conversion that has lost a part says so, and is made anew the next time", async () => {
  const url = `${server.origin}/large.gguf`;
  await run("worker", open, { url });
  await page.evaluate(async () => {
    const remove = async (folder) => {
      for await (const [name, handle] of folder.entries()) {
        if (handle.kind === "directory") await remove(handle);
        else if (name === "b1") await folder.removeEntry(name);
      }
    };
    await remove(await navigator.storage.getDirectory());
  });
  await assert.rejects(run("worker", open, { url }), { code: "io", message: /was removed from the cache while in use/ });
  assert.deepEqual(await list(), []);
  const again = await run("worker", open, { url });
  assert.equal(again.hash, kProgramHashes["large.gguf"]);
  assert.ok(again.seen.length > 0);
});

test("a conversion that is stopped leaves no part of itself", async () => {
  await assert.rejects(run("worker", open, { url: `${server.origin}/large.gguf`, abortAt: 0.6 }), { code: "cancelled" });
  assert.deepEqual((await list()).filter((entry) => entry.kind === "conversion"), []);
});

test("where there is no room, the error says how much is needed, and nothing is left", async () => {
  const session = await browser.context.newCDPSession(page);
  await session.send("Storage.overrideQuotaForOrigin", { origin: server.origin, quotaSize: Math.round(large.length * 1.2) });
  try {
    const error = await run("worker", open, { url: `${server.origin}/large.gguf` }).then(() => undefined, (e) => e);
    assert.equal(error?.code, "quota");
    assert.match(error.message, /large\.gguf: the browser's storage is full: .* MB are needed/);
    assert.deepEqual((await list()).filter((entry) => entry.kind === "conversion"), []);
    // A kept conversion needs no more room.
    await run("page", ({ cache }) => cache.clear());
    await session.send("Storage.overrideQuotaForOrigin", { origin: server.origin });
    await run("worker", open, { url: `${server.origin}/large.gguf` });
    for (const quotaSize of [large.length, 1]) {
      await session.send("Storage.overrideQuotaForOrigin", { origin: server.origin, quotaSize });
      assert.deepEqual((await run("worker", open, { url: `${server.origin}/large.gguf` })).seen, [], `with room for ${quotaSize}`);
    }
  } finally {
    await session.send("Storage.overrideQuotaForOrigin", { origin: server.origin });
  }
});

test("a browser that is killed during a conversion leaves nothing that counts, and converts again", async () => {
  let killed = await launchBrowser({ profile: `${bundled.folder}/profile` });
  const served = server.file("/large.gguf");
  served.bytesPerSecond = large.length / 4; // so that it is killed before it can be whole
  try {
    const before = await killed.open(server.origin);
    const work = run("worker", open, { url: `${server.origin}/large.gguf` }, before).then(() => "finished", () => "killed");
    const sent = () => server.requests("/large.gguf").reduce((sum, request) => sum + request.sent, 0);
    while (sent() < large.length / 2) await sleep(10);
    await killed.kill();
    assert.equal(await work, "killed");
    served.bytesPerSecond = undefined;

    killed = await launchBrowser({ profile: `${bundled.folder}/profile` });
    const next = await killed.open(server.origin);
    assert.deepEqual((await list(next)).filter((entry) => entry.kind === "conversion"), []);
    const again = await run("worker", open, { url: `${server.origin}/large.gguf` }, next);
    assert.ok(again.seen.length > 0);
    assert.equal(again.hash, kProgramHashes["large.gguf"]);
    assert.deepEqual((await list(next)).map(({ kind, complete }) => [kind, complete]), [["conversion", true]]);
  } finally {
    served.bytesPerSecond = undefined;
    await killed.close().catch(() => {});
  }
});

// Sources without a browser: addresses and their faults, paths, blobs, bytes. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { bundle } from "./support/bundle.mjs";
import { MIB, randomBytes, sha256 } from "./support/bytes.mjs";
import { startServer } from "./support/server.mjs";

const body = randomBytes(18 * MIB + 12345);
const retry = { tries: 3, delayMs: 10 };
let bundled, openInput, Sha256, server, folder;

before(async () => {
  bundled = await bundle(["src/source/index.ts", "src/source/sha256.ts"]);
  ({ openInput } = await bundled.load("source"));
  ({ Sha256 } = await bundled.load("sha256"));
  server = await startServer();
  folder = await mkdtemp(join(tmpdir(), "pteryx-sources-"));
});
after(async () => {
  await server.close();
  await bundled.remove();
  await rm(folder, { recursive: true });
});

/** Serves the body at a path of its own. */
function serve(path, how = {}) {
  server.file(path, { body, ...how });
  return server.origin + path;
}
function open(input, options = {}) {
  return openInput(input, { cache: false, retry, ...options });
}
/** Reads everything in parts, as weights are read. */
async function readAll(source, partBytes = 3 * MIB) {
  const all = new Uint8Array(source.size);
  for (let at = 0; at < source.size; at += partBytes) all.set(await source.read(at, Math.min(partBytes, source.size - at)), at);
  return all;
}
function assertSame(actual, expected) {
  assert.equal(actual.length, expected.length);
  assert.ok(Buffer.compare(actual, expected) === 0, "the bytes differ");
}
function fails(code, pattern) {
  return (error) => {
    assert.equal(error.name, "PteryxError", String(error.stack));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, pattern);
    return true;
  };
}

test("SHA-256 equals Node's for every length of the padding, in parts of any size", () => {
  for (let size = 0; size < 200; size++) assert.equal(new Sha256().update(body.subarray(0, size)).hex(), sha256(body.subarray(0, size)));
  const hash = new Sha256();
  for (let at = 0, part = 1; at < 3 * MIB; at += part, part = (part * 7) % 9973) hash.update(body.subarray(at, Math.min(3 * MIB, at + part)));
  assert.equal(hash.hex(), sha256(body.subarray(0, 3 * MIB)));
});

test("a path, a file address, bytes and a blob give the same bytes", async () => {
  const path = join(folder, "model.pte");
  const small = body.subarray(0, 5 * MIB);
  await writeFile(path, small);
  for (const input of [path, pathToFileURL(path), pathToFileURL(path).href, small, small.slice().buffer, new Blob([small])]) {
    let done;
    const source = await open(input, { sha256: sha256(small), onBytes: (bytes, total) => (done = [bytes, total]) });
    assert.equal(source.size, small.length);
    assert.deepEqual(done, [small.length, small.length]);
    assertSame(await source.read(4 * MIB - 7, 1000), small.subarray(4 * MIB - 7, 4 * MIB + 993));
    assert.equal((await source.read(small.length, 0)).length, 0);
    await assert.rejects(source.read(small.length - 1, 2), fails("internal", /outside of its 5242880 bytes/));
    await source.complete();
    source.close();
    await assert.rejects(source.read(0, 1), fails("cancelled", /cancelled/));
  }
});

test("paths that cannot be read say why", async () => {
  await assert.rejects(open(join(folder, "nowhere.pte")), fails("io", /nowhere\.pte: no such file/));
  await assert.rejects(open(folder), fails("io", /is not a file/));
  await writeFile(join(folder, "empty.pte"), "");
  await assert.rejects(open(join(folder, "empty.pte")), fails("invalid-program", /is empty/));
  const path = join(folder, "shrinks.pte");
  await writeFile(path, body.subarray(0, 1000));
  const source = await open(path);
  await truncate(path, 500);
  await assert.rejects(source.read(400, 200), fails("io", /ends at byte 500, expected 1000/));
  source.close();
});

test("inputs of other kinds are refused", async () => {
  await assert.rejects(open(17), fails("invalid-argument", /expected an address/));
  await assert.rejects(open("ftp://127.0.0.1/model.pte"), fails("invalid-argument", /http: or https:/));
  await assert.rejects(open(new Uint8Array()), fails("invalid-program", /is empty/));
  await assert.rejects(open(body, { sha256: "12" }), fails("invalid-argument", /64 hexadecimal digits/));
  const source = await open(body.subarray(0, 100), { sha256: sha256(body) });
  await assert.rejects(source.complete(), fails("invalid-program", /SHA-256 is .* expected/));
});

test("tables anywhere are read without the weights, which then come in one response", async () => {
  const url = serve("/tables.pte");
  const progress = [];
  const source = await open(url, { onBytes: (done, total) => progress.push([done, total]) });
  assert.equal(source.size, body.length);
  assertSame(await source.read(0, 64), body.subarray(0, 64));
  assertSame(await source.read(body.length - 30_000, 30_000), body.subarray(body.length - 30_000));
  assertSame(await source.read(body.length - 20_000, 1000), body.subarray(body.length - 20_000, body.length - 19_000));
  assertSame(await source.read(10 * MIB, 5000), body.subarray(10 * MIB, 10 * MIB + 5000));
  assertSame(await source.read(10 * MIB + 9000, 5000), body.subarray(10 * MIB + 9000, 10 * MIB + 14_000));
  await sleep(50);
  const ranges = server.requests("/tables.pte").map(({ range }) => range);
  assert.deepEqual(ranges, ["bytes=0-", `bytes=${body.length - 30_000}-`, `bytes=${10 * MIB}-${10 * MIB + 65535}`]);
  assert.ok(progress.at(-1)[0] < 4 * MIB);
  source.beginDownload();
  assertSame(await readAll(source), body);
  await source.complete();
  assert.equal(server.requests("/tables.pte").length, 3, "the first response is read on");
  assert.deepEqual(progress.at(-1), [body.length, body.length]);
  assert.ok(progress.every(([done], i) => i === 0 || done >= progress[i - 1][0]), "progress never decreases");
  source.close();
});

test("a reader that stops is waited for", async () => {
  const big = new Uint8Array(96 * MIB);
  const url = serve("/big.pte", { body: big });
  const source = await open(url);
  await source.read(0, 100);
  source.beginDownload();
  await source.read(4 * MIB, 100);
  await sleep(300);
  assert.ok(server.requests("/big.pte")[0].sent < 32 * MIB, `${server.requests("/big.pte")[0].sent} bytes were sent`);
  source.close();
});

test("reads in any order without a cache are right", async () => {
  const source = await open(serve("/order.pte"));
  source.beginDownload();
  for (const at of [16, 3, 4, 5, 9, 8, 0, 17]) assertSame(await source.read(at * MIB, MIB), body.subarray(at * MIB, (at + 1) * MIB));
  const both = await Promise.all([source.read(11 * MIB, 6 * MIB), source.read(2 * MIB, 6 * MIB)]);
  assertSame(both[0], body.subarray(11 * MIB, 17 * MIB));
  assertSame(both[1], body.subarray(2 * MIB, 8 * MIB));
  source.close();
});

test("random reads over connections that break, before and after the download begins, are right", async () => {
  const words = new Uint32Array(randomBytes(4000, 9).buffer);
  let used = 0;
  const below = (limit) => words[used++] % limit;
  for (let round = 0; round < 10; round++) {
    const dropAfter = Array.from({ length: below(4) }, () => 300_000 + below(6 * MIB));
    const source = await open(serve(`/random-${round}.pte`, { ranges: round % 4 !== 0, dropAfter }));
    const begin = below(8);
    const reads = [];
    for (let i = 0; i < 8; i++) {
      if (i === begin) source.beginDownload();
      const size = below(below(2) ? 6 * MIB : 100_000);
      const at = below(body.length - size);
      reads.push(source.read(at, size).then((bytes) => assertSame(bytes, body.subarray(at, at + size))));
      if (below(2)) await reads.at(-1);
    }
    await Promise.all(reads);
    source.close();
  }
});

test("a broken connection is taken up where it broke", async () => {
  const url = serve("/broken.pte", { dropAfter: [5 * MIB + 77, 6 * MIB, 3, 1 * MIB] });
  const source = await open(url, { sha256: sha256(body) });
  source.beginDownload();
  assertSame(await readAll(source), body);
  await source.complete();
  const requests = server.requests("/broken.pte");
  assert.equal(requests.length, 5);
  const starts = requests.map(({ range }) => Number(/\d+/.exec(range)[0]));
  for (let i = 1; i < starts.length; i++) {
    // What a broken socket still held is lost with it.
    assert.ok(starts[i] >= starts[i - 1] && starts[i] <= starts[i - 1] + requests[i - 1].sent, `request ${i} begins at ${starts[i]}`);
  }
  assert.ok(requests.reduce((sum, { sent }) => sum + sent, 0) < body.length + 4 * MIB);
  source.close();
});

test("a stalled connection is replaced", async () => {
  const source = await open(serve("/stall.pte", { stallAfter: 7 * MIB }), { retry: { ...retry, stallMs: 700 } });
  source.beginDownload();
  assertSame(await readAll(source), body);
  assert.equal(server.requests("/stall.pte").length, 2);
  source.close();
});

test("a file that is cut short, or a server that goes away, ends with the code network", async () => {
  const source = await open(serve("/short.pte", { dropAfter: Array(20).fill(100) }));
  await assert.rejects(source.read(0, MIB), fails("network", /short\.pte: the connection broke off at byte \d+ of \d+|ended at byte/));
  assert.equal(server.requests("/short.pte").length, 1 + retry.tries);
  source.close();
});

test("a file that changes during the download is noticed", async () => {
  for (const change of [{ etag: '"2"' }, { body: body.subarray(0, 16 * MIB) }]) {
    const url = serve("/changes.pte", { dropAfter: [9 * MIB] });
    const source = await open(url);
    source.beginDownload();
    await source.read(0, MIB);
    Object.assign(server.file("/changes.pte"), change);
    await assert.rejects(readAll(source), fails("io", /changed on the server while it was being loaded/));
    source.close();
  }
});

test("servers without ranges: all of it is held in memory, up to a bound", async () => {
  const url = serve("/whole.pte", { ranges: false, dropAfter: [9 * MIB] });
  const source = await open(url, { sha256: sha256(body) });
  assertSame(await source.read(body.length - 100, 100), body.subarray(body.length - 100));
  assertSame(await readAll(source), body);
  await source.complete();
  assert.equal(server.requests("/whole.pte").length, 2);
  source.close();
  await assert.rejects(open(url, { memoryLimit: 10 * MIB }), fails("network", /server must support range requests to send 18886713 bytes/));
});

test("compressed and chunked responses, whose size nobody knows before", async () => {
  for (const encoding of ["gzip", "chunked"]) {
    const small = new Uint8Array(6 * MIB);
    small.set(body.subarray(0, MIB), 3 * MIB);
    const source = await open(serve(`/${encoding}.pte`, { body: small, encoding }), { sha256: sha256(small) });
    assert.equal(source.size, small.length);
    assertSame(await readAll(source), small);
    await source.complete();
    assert.equal(server.requests(`/${encoding}.pte`).length, 1);
    source.close();
    await assert.rejects(open(serve(`/${encoding}.pte`, { body: small, encoding }), { memoryLimit: MIB }), fails("network", /range requests/));
  }
});

test("errors of the server, the wrong type and an empty file are named", async () => {
  for (const status of [403, 404, 500]) {
    await assert.rejects(open(serve("/error.pte", { status })), fails("http", new RegExp(`http://127.*/error\\.pte: the server answered ${status}`)));
  }
  await assert.rejects(open(server.origin + "/nothing.pte"), fails("http", /answered 404/));
  await assert.rejects(open(serve("/page.pte", { type: "text/html; charset=utf-8" })), fails("invalid-program", /is a web page \(text\/html/));
  await assert.rejects(open(serve("/empty.pte", { body: new Uint8Array() })), fails("invalid-program", /is empty/));
  await assert.rejects(open("http://127.0.0.1:9/model.pte"), fails("network", /cannot be reached/));
  const source = await open(serve("/wrong.pte"), { sha256: sha256(body.subarray(1)) });
  source.beginDownload();
  await readAll(source);
  await assert.rejects(source.complete(), fails("invalid-program", /SHA-256/));
  source.close();
});

test("a signal ends everything at once", async () => {
  await assert.rejects(open(serve("/abort.pte"), { signal: AbortSignal.abort() }), fails("cancelled", /abort\.pte: cancelled/));
  const url = serve("/slow.pte", { bytesPerSecond: 4 * MIB });
  const controller = new AbortController();
  const source = await open(url, { signal: controller.signal });
  source.beginDownload();
  setTimeout(() => controller.abort(new Error("enough")), 100);
  const begun = performance.now();
  await assert.rejects(readAll(source), (error) => fails("cancelled", /cancelled/)(error) && error.cause.message === "enough");
  assert.ok(performance.now() - begun < 2000);
  await assert.rejects(source.complete(), fails("cancelled", /cancelled/));
  const stalled = new AbortController();
  setTimeout(() => stalled.abort(), 50);
  await assert.rejects(open(serve("/never.pte", { stallAfter: 64 * 1024, encoding: "chunked" }), { signal: stalled.signal }), fails("cancelled", /cancelled/));
});

test("a read ends as cancelled whenever its source is closed", async () => {
  const { fetch } = globalThis;
  try {
    // That many steps after bytes came.
    for (let steps = 0; steps < 30; steps++) {
      let part;
      const body = new ReadableStream({ start: (controller) => (part = controller).enqueue(new Uint8Array(64)) });
      globalThis.fetch = async () => new Response(body, { headers: { "Accept-Ranges": "bytes", "Content-Length": "200" } });
      const source = await open("http://127.0.0.1/closed.pte");
      const read = assert.rejects(source.read(0, 200), fails("cancelled", /closed\.pte: cancelled/));
      await sleep(0);
      part.enqueue(new Uint8Array(64));
      for (let step = 0; step < steps; step++) await undefined;
      source.close();
      await read;
    }
  } finally {
    globalThis.fetch = fetch;
  }
});

test("nothing of the newest systems is needed: AbortSignal.any and URL.canParse", async () => {
  const { any } = AbortSignal;
  const { canParse } = URL;
  delete AbortSignal.any;
  delete URL.canParse;
  try {
    const controller = new AbortController();
    const source = await open(serve("/old.pte", { bytesPerSecond: 4 * MIB }), { signal: controller.signal });
    assertSame(await source.read(0, 64), body.subarray(0, 64));
    setTimeout(() => controller.abort(), 50);
    await assert.rejects(readAll(source), fails("cancelled", /cancelled/));
    await assert.rejects(open("http://", {}), fails("invalid-argument", /is no address/));
  } finally {
    AbortSignal.any = any;
    URL.canParse = canParse;
  }
});

test("what is no model is named by its first bytes", async () => {
  const cases = {
    "<!DOCTYPE html><html>": "a web page", "  <html>": "a web page", "version https://git-lfs.github.com/spec/v1\noid": "a Git LFS pointer",
    "\x89PNG\r\n\x1a\n": "a PNG picture", "\xff\xd8\xff\xe0": "a JPEG picture", "RIFF1234WEBPVP8 ": "a picture", "PK\x03\x04data": "a ZIP archive", "\x1f\x8b\x08": "compressed by gzip",
    "%PDF-1.7": "a PDF document", '\x40\x01\0\0\0\0\0\0{"__metadata__"': "a safetensors file",
  };
  for (const [text, name] of Object.entries(cases)) {
    await assert.rejects(open(Buffer.from(text, "latin1")), fails("invalid-program", new RegExp(`bytes: expected a model \\(\\.pte or \\.gguf\\), got ${name}`)));
  }
  for (const text of ["GGUF\x03\0\0\0", "\x20\0\0\0ET12eh00", '{"version": "1.0"}', "x"]) (await open(Buffer.from(text, "latin1"))).close();
});

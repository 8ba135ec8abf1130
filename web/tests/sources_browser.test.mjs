// Sources in Chromium, on the page's thread and in workers: the cache, its failures, chosen files. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launchBrowser } from "./support/browser.mjs";
import { bundle } from "./support/bundle.mjs";
import { MIB, randomBytes, sha256 } from "./support/bytes.mjs";
import { inPage, serveRunner } from "./support/in_page.mjs";
import { startServer } from "./support/server.mjs";

const body = randomBytes(13 * MIB + 123);
const digest = sha256(body);
const THREADS = ["worker", "page"];
let bundled, server, browser, page, folder;

before(async () => {
  bundled = await bundle(["src/source/index.ts"]);
  server = await startServer({ root: bundled.folder });
  serveRunner(server);
  browser = await launchBrowser({ args: ["--host-resolver-rules=MAP pteryx.test 127.0.0.1"] });
  page = await browser.open(server.origin);
  folder = await mkdtemp(join(tmpdir(), "pteryx-sources-"));
});
after(async () => {
  await browser.close();
  await server.close();
  await bundled.remove();
  await rm(folder, { recursive: true });
});

function serve(path, how = {}) {
  server.file(path, { body, ...how });
  return server.origin + path;
}
function run(thread, task, argument, on = page) {
  return inPage(on, { thread, modules: ["/source.js"] }, task, argument);
}
/** Opens, reads the tables and then everything, and closes. `stopAt`: aborts once so many bytes are there. */
async function load({ openInput }, { url, stopAt, ...options }) {
  const controller = new AbortController();
  const progress = [];
  const onBytes = (done) => {
    progress.push(done);
    if (stopAt !== undefined && done >= stopAt) controller.abort();
  };
  const source = await openInput(url, { cache: true, signal: controller.signal, onBytes, retry: { tries: 2, delayMs: 10 }, ...options });
  try {
    const tail = await source.read(source.size - 10, 10);
    source.beginDownload();
    const all = new Uint8Array(source.size);
    for (let at = 0; at < source.size; at += 3 << 20) all.set(await source.read(at, Math.min(3 << 20, source.size - at)), at);
    await source.complete();
    if (tail.some((byte, i) => byte !== all[all.length - 10 + i])) throw new Error("the tail differs");
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", all));
    const digest = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return { digest, cached: source.cached, notes: source.notes, first: progress[0], last: progress.at(-1) };
  } finally {
    source.close();
  }
}
async function entry(url) {
  const list = await run("page", ({ cache }) => cache.list());
  return list.find((found) => found.url === url);
}
function sent(path) {
  return server.requests(path).reduce((sum, request) => sum + request.sent, 0);
}
function fails(code, pattern) {
  return (error) => {
    assert.equal(error.name, "PteryxError", error.stack);
    assert.equal(error.code, code, error.message);
    assert.match(error.message, pattern);
    return true;
  };
}

for (const thread of THREADS) {
  test(`${thread}: the second visit takes a download from the cache`, async () => {
    const path = `/twice-${thread}.pte`;
    const first = await run(thread, load, { url: serve(path) });
    assert.deepEqual(first, { digest, cached: false, notes: [], first: 0, last: body.length });
    const { size, presentBytes, complete, kind, lastUsed } = await entry(server.origin + path);
    assert.deepEqual([size, presentBytes, complete, kind], [body.length, body.length, true, "download"]);
    assert.ok(Math.abs(Date.now() - lastUsed) < 60_000);
    server.clearLog();
    // An address relative to the page, which a worker must be told.
    const second = await run(thread, load, { url: `.${path}`, baseUrl: `${server.origin}/index.html` });
    assert.deepEqual(second, { digest, cached: true, notes: [], first: body.length, last: body.length });
    assert.deepEqual(server.requests(path).map(({ range }) => range), [`bytes=${body.length - 1}-`]);
  });

  test(`${thread}: of many small reads at once, each block is opened once`, async () => {
    const url = serve(`/small-${thread}`);
    await run(thread, load, { url });
    const { opened, wrong } = await run(thread, async ({ openInput }, { url: at }) => {
      const source = await openInput(at, { cache: true });
      const { getFileHandle } = FileSystemDirectoryHandle.prototype;
      let opened = 0;
      FileSystemDirectoryHandle.prototype.getFileHandle = function (name, options) {
        if (/^b\d+$/.test(name)) opened++;
        return getFileHandle.call(this, name, options);
      };
      try {
        const kBytes = 1000;
        const offsets = Array.from({ length: 500 }, (_, i) => Math.floor((i * (source.size - kBytes)) / 499));
        const parts = await Promise.all(offsets.map((offset) => source.read(offset, kBytes)));
        const bytes = await source.read(0, source.size);
        const differs = (part, i) => part.length !== kBytes || part.some((byte, at) => byte !== bytes[offsets[i] + at]);
        return { opened, wrong: parts.filter(differs).length };
      } finally {
        FileSystemDirectoryHandle.prototype.getFileHandle = getFileHandle;
        source.close();
      }
    }, { url });
    assert.equal(wrong, 0);
    // Four blocks, each again for a part of it that is as large as a block where all is read.
    assert.ok(opened <= 8, `${opened} blocks were opened`);
  });

  test(`${thread}: after a block that could not be written, the download goes on where it stopped`, async () => {
    const fill = async ({ openInput }, { url: at, reads }) => {
      const { fetch } = self;
      self.fetch = async (...request) => {
        const { body, status, headers } = await fetch(...request);
        let held = new Uint8Array();
        // No part that arrives ends where a block does.
        const transform = (part, out) => {
          const all = new Uint8Array(held.length + part.length);
          all.set(held);
          all.set(part, held.length);
          out.enqueue(all.slice(0, -1000));
          held = all.slice(-1000);
        };
        return new Response(body.pipeThrough(new TransformStream({ transform, flush: (out) => out.enqueue(held) })), { status, headers });
      };
      const { getFileHandle } = FileSystemDirectoryHandle.prototype;
      let failures = 0;
      FileSystemDirectoryHandle.prototype.getFileHandle = async function (name, options) {
        if (name === "b1" && options?.create && failures++ === 0) throw new DOMException("full", "QuotaExceededError");
        return getFileHandle.call(this, name, options);
      };
      const source = await openInput(at, { cache: true });
      try {
        const completed = source.complete().then(() => [], (error) => [error.code]);
        const parts = await Promise.allSettled(Array.from({ length: reads }, (_, i) => source.read(i << 20, 1 << 20)));
        const failedCodes = [...parts.flatMap(({ reason }) => reason?.code ?? []), ...(await completed)];
        await source.complete();
        return failedCodes;
      } finally {
        source.close();
        FileSystemDirectoryHandle.prototype.getFileHandle = getFileHandle;
        self.fetch = fetch;
      }
    };
    for (const reads of [0, 13]) {
      const url = serve(`/unwritten-${thread}-${reads}.pte`);
      assert.deepEqual(await run(thread, fill, { url, reads }), ["quota"]);
      const next = await run(thread, load, { url });
      assert.deepEqual([next.digest, next.cached], [digest, true], `${reads} reads`);
    }
  });

  test(`${thread}: an interrupted download goes on at the next visit`, async () => {
    const path = `/resume-${thread}.pte`;
    const url = serve(path, { bytesPerSecond: 40 * MIB });
    await assert.rejects(run(thread, load, { url, stopAt: 9 * MIB }), fails("cancelled", /cancelled/));
    const kept = await entry(url);
    assert.equal(kept.presentBytes, 8 * MIB);
    assert.equal(kept.complete, false);
    server.clearLog();
    const next = await run(thread, load, { url });
    assert.deepEqual([next.digest, next.cached, next.first], [digest, false, 8 * MIB]);
    assert.equal(server.requests(path)[0].range, `bytes=${8 * MIB}-`);
    assert.ok(sent(path) <= 6 * MIB);
  });

  test(`${thread}: a changed file is noticed`, async () => {
    const path = `/changed-${thread}.pte`;
    const url = serve(path, { etag: null, modified: "Mon, 02 Mar 2026 10:00:00 GMT" });
    await run(thread, load, { url });
    const other = randomBytes(13 * MIB + 123, 2);
    serve(path, { body: other, etag: null, modified: "Tue, 03 Mar 2026 10:00:00 GMT" });
    const second = await run(thread, load, { url });
    assert.deepEqual([second.digest, second.cached], [sha256(other), false]);
    serve(path, { body: other.subarray(0, 5 * MIB), etag: '"new"', modified: null });
    assert.equal((await run(thread, load, { url })).digest, sha256(other.subarray(0, 5 * MIB)), "one that is shorter");
    const list = await run("page", ({ cache }) => cache.list());
    assert.equal(list.filter((found) => found.url === url).length, 1, "older versions are removed");
  });

  test(`${thread}: what is written to the cache counts only when it is finished`, async () => {
    const outcome = await run(thread, async ({ createEntry, openEntry, cache }, key) => {
      const writer = await createEntry(key, "conversion", { identity: "1", tag: "q4", expectedBytes: 1000 });
      const part = Uint8Array.from({ length: 100_000 }, (_, i) => i % 251);
      const size = 21 * (1 << 20) + 77;
      for (let at = size - part.length; at > 0; at -= 5_000_000) await writer.write(at, part);
      await writer.flush();
      await Promise.all([writer.write(0, part.subarray(0, 8)), writer.write(8, part.subarray(8, 16))]);
      const early = await openEntry(key, "conversion", { identity: "1", tag: "q4" });
      const back = await writer.read(size - 20, 20);
      const written = await writer.finish(size);
      written.close();
      const source = await openEntry(key, "conversion", { identity: "1", tag: "q4" });
      const other = (await openEntry(key, "conversion", { identity: "1", tag: "q8" })) ?? (await openEntry(key, "conversion", { identity: "2", tag: "q4" }));
      const at = size - 10_000_000 - part.length;
      const right = (await source.read(at, part.length)).every((byte, i) => byte === part[i]);
      const head = Array.from(await source.read(0, 20));
      source.close();
      const abandoned = await createEntry(`${key}-abandoned`, "conversion");
      await abandoned.write(9_000_000, part);
      await abandoned.abort();
      const list = (await cache.list()).filter((found) => found.url.startsWith(key)).map(({ url, kind, size, complete }) => ({ url, kind, size, complete }));
      return { early: early !== undefined, other: other !== undefined, back: Array.from(back), right, head, size: source.size, cached: source.cached, list };
    }, `model-${thread}.gguf`);
    const part = Array.from({ length: 100_000 }, (_, i) => i % 251);
    const size = 21 * MIB + 77;
    assert.deepEqual(outcome, {
      early: false, other: false, back: part.slice(-20), right: true, head: [...part.slice(0, 16), 0, 0, 0, 0], size, cached: true,
      list: [{ url: `model-${thread}.gguf`, kind: "conversion", size, complete: true }],
    });
  });
}

test("a conversion goes on while other tabs open the cache, and replaces that of an older source", async () => {
  const convert = async ({ createEntry }, { identity, tag, ms }) => {
    const writer = await createEntry("convert.gguf", "conversion", { identity, tag });
    for (let i = 0; i < 4; i++) {
      await writer.write(i * 5_000_000, new Uint8Array(5_000_000).fill(i + 1));
      await new Promise((resolve) => setTimeout(resolve, ms));
    }
    const source = await writer.finish(20_000_000);
    const bytes = [await source.read(0, 1), await source.read(19_999_999, 1)].map(([byte]) => byte);
    source.close();
    return bytes;
  };
  const slow = run("worker", convert, { identity: "1", tag: "q4", ms: 150 });
  const second = await browser.open(server.origin);
  for (let i = 0; i < 4; i++) {
    await run("worker", ({ cache }) => cache.list(), undefined, second);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await run("page", convert, { identity: "1", tag: "q8", ms: 0 }, second);
  assert.deepEqual(await slow, [1, 4]);
  const kept = async () => (await run("page", ({ cache }) => cache.list())).filter(({ url }) => url === "convert.gguf").length;
  assert.equal(await kept(), 2);
  await run("page", convert, { identity: "1", tag: "q8", ms: 0 });
  assert.equal(await kept(), 2, "the same again");
  await run("page", convert, { identity: "2", tag: "q4", ms: 0 });
  assert.equal(await kept(), 1);
  await second.close();
});

test("what another tab begins to use while folders are looked through is not removed", async () => {
  const bytes = await run("worker", async ({ cache, createEntry, openEntry }) => {
    const other = await import("/source.js?other"); // as another tab has it
    await other.cache.clear();
    (await (await other.createEntry("used.gguf", "conversion", { identity: "1" })).finish(1)).close();
    const { entries } = FileSystemDirectoryHandle.prototype;
    /** Does something of the other tab's at the last moment before this one looks through the folders. */
    const before = async (task, look) => {
      let result;
      FileSystemDirectoryHandle.prototype.entries = async function* () {
        FileSystemDirectoryHandle.prototype.entries = entries;
        result = await task();
        yield* this.entries();
      };
      const looked = await look();
      return [result, looked];
    };
    // The first call looks for what killed tabs left behind.
    const [begun] = await before(async () => {
      const writer = await other.createEntry("begun.gguf", "conversion", { identity: "1" });
      await writer.write(0, new Uint8Array(9_000_000).fill(7));
      await writer.flush();
      return writer;
    }, () => cache.list());
    const source = await begun.finish(9_000_000);
    // A conversion of another version replaces the older one.
    const writer = await createEntry("used.gguf", "conversion", { identity: "2" });
    const [used, newer] = await before(() => other.openEntry("used.gguf", "conversion", { identity: "1" }), () => writer.finish(1));
    const read = [await source.read(8_999_999, 1), await used.read(0, 1)].map(([byte]) => byte);
    for (const opened of [source, used, newer]) opened.close();
    return read;
  });
  assert.deepEqual(bytes, [7, 0]);
});

test("threads and tabs may load the same file at the same time", async () => {
  const url = serve("/tabs.pte", { bytesPerSecond: 30 * MIB });
  const second = await browser.open(server.origin);
  const loads = await Promise.all(THREADS.flatMap((thread) => [page, second].map((tab) => run(thread, load, { url }, tab))));
  for (const { digest: found } of loads) assert.equal(found, digest);
  await second.close();
  server.clearLog();
  const later = await run("worker", load, { url });
  assert.deepEqual([later.digest, later.cached, sent("/tabs.pte")], [digest, true, 1]);
});

test("offline, a whole copy is used and a part is not", async () => {
  const url = serve("/offline.pte");
  const part = serve("/offline-part.pte", { bytesPerSecond: 40 * MIB });
  await run("worker", load, { url });
  await assert.rejects(run("worker", load, { url: part, stopAt: 5 * MIB }), fails("cancelled", /./));
  // The page and its modules stay loaded: only the page's thread can go on without the server.
  await server.setOnline(false);
  const { digest: found, cached, notes } = await run("page", load, { url });
  assert.deepEqual([found, cached, notes.length], [digest, true, 1]);
  assert.match(notes[0], /copy in the cache is used, which may be out of date: .*cannot be reached/);
  await assert.rejects(run("page", load, { url: part }), fails("network", /offline-part\.pte: .*cannot be reached/));
  await server.setOnline(true);
  serve("/offline.pte", { silent: true });
  assert.match((await run("page", load, { url, retry: { stallMs: 500 } })).notes[0], /no answer within 0\.1 s/);
  serve("/offline.pte", { status: 503 });
  assert.match((await run("page", load, { url })).notes[0], /answered 503/);
  serve("/offline.pte", { status: 404 });
  await assert.rejects(run("page", load, { url }), fails("http", /answered 404/));
});

test("a given SHA-256 is compared once, and then stands for the file", async () => {
  const url = serve("/hashed.pte", { etag: null });
  await assert.rejects(run("worker", load, { url, sha256: sha256(body.subarray(1)) }), fails("invalid-program", /SHA-256 is .* expected/));
  assert.equal(await entry(url), undefined, "a wrong file is not kept");
  await run("worker", load, { url, sha256: digest.toUpperCase() });
  server.clearLog();
  assert.deepEqual((await run("worker", load, { url, sha256: digest })).cached, true);
  assert.equal(server.requests("/hashed.pte").length, 0, "the server is not asked");
});

test("without ETag, Last-Modified and SHA-256 nothing is kept, and a note says so", async () => {
  const url = serve("/unversioned.pte", { etag: null });
  const { digest: found, notes } = await run("worker", load, { url });
  assert.equal(found, digest);
  assert.match(notes[0], /neither ETag nor Last-Modified/);
  assert.equal(await entry(url), undefined);
});

test("servers without ranges and with compression fill the cache too", async () => {
  for (const how of [{ body, ranges: false, dropAfter: [6 * MIB] }, { body: body.subarray(0, 5 * MIB), encoding: "gzip" }]) {
    const path = `/whole-${how.encoding ?? "plain"}.pte`;
    const url = serve(path, how);
    assert.equal((await run("worker", load, { url, memoryLimit: how.encoding ? 64 * MIB : MIB })).digest, sha256(how.body));
    const { digest: found, cached, notes } = await run("worker", load, { url });
    assert.deepEqual([found, cached, notes], [sha256(how.body), true, []]);
  }
});

test("a damaged block is not believed", async () => {
  const url = serve("/damaged.pte");
  await run("worker", load, { url });
  for (const damage of ["short", "mark", "gone"]) {
    await run("page", async (_, kind) => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle("pteryx");
      for await (const folder of root.values()) {
        const record = await (await (await folder.getFileHandle("record.json")).getFile()).text();
        if (!record.includes("/damaged.pte")) continue;
        if (kind === "gone") return folder.removeEntry("b2");
        const writable = await (await folder.getFileHandle("b1")).createWritable({ keepExistingData: true });
        if (kind === "short") await writable.truncate(1000);
        else await writable.write({ type: "write", position: 4 << 20, data: new Uint8Array(16) });
        return writable.close();
      }
      throw new Error("no such folder");
    }, damage);
    server.clearLog();
    assert.equal((await run("worker", load, { url })).digest, digest, damage);
    assert.ok(sent("/damaged.pte") > 4 * MIB && sent("/damaged.pte") < 9 * MIB, `${damage}: ${sent("/damaged.pte")} bytes were sent`);
  }
});

test("delete and clear", async () => {
  const urls = ["/delete-a.pte", "/delete-b.pte"].map((path) => serve(path, { body: body.subarray(0, MIB) }));
  for (const url of urls) await run("worker", async ({ openInput }, address) => (await openInput(address, { cache: true })).complete(), url);
  assert.equal(await run("page", ({ cache }) => cache.delete("/delete-a.pte")), true, "by the address as the page names it");
  assert.equal(await run("page", ({ cache }, url) => cache.delete(url), urls[0]), false);
  assert.equal(await entry(urls[0]), undefined);
  assert.equal((await entry(urls[1])).complete, true);
  // While a load is under way, which goes on.
  const slow = serve("/delete-c.pte", { bytesPerSecond: 30 * MIB });
  const unread = serve("/delete-d.pte", { bytesPerSecond: 30 * MIB });
  const loading = run("worker", load, { url: slow });
  const completing = run("worker", async ({ openInput }, address) => (await openInput(address, { cache: true })).complete(), unread);
  for (const url of [slow, unread]) while (!(await entry(url))?.presentBytes) await new Promise((resolve) => setTimeout(resolve, 20));
  await run("page", ({ cache }) => cache.clear());
  assert.equal(await entry(urls[1]), undefined);
  assert.equal((await loading).digest, digest);
  await completing;
  assert.equal((await entry(unread)).complete, true);
  assert.equal((await run("worker", load, { url: slow })).digest, digest);
});

test("other origins: no preflight, and a refusal that names CORS", async () => {
  const open = await startServer({ headers: { "Access-Control-Allow-Origin": "*" } });
  const shut = await startServer();
  for (const other of [open, shut]) other.file("/model.pte", { body, modified: "Mon, 02 Mar 2026 10:00:00 GMT" });
  try {
    const url = `${open.origin}/model.pte`;
    assert.equal((await run("worker", load, { url })).digest, digest);
    assert.equal((await run("worker", load, { url })).cached, true);
    assert.ok(open.log.every(({ method }) => method === "GET"));
    await assert.rejects(run("worker", load, { url: `${shut.origin}/model.pte` }), fails("network", /CORS/));
  } finally {
    await open.close();
    await shut.close();
  }
});

test("a page that may not store says so and loads", async () => {
  const insecure = await browser.open(server.origin.replace("127.0.0.1", "pteryx.test"));
  serve("/insecure.pte");
  for (const thread of THREADS) {
    const url = `${server.origin.replace("127.0.0.1", "pteryx.test")}/insecure.pte`;
    const { length, notes, list } = await run(thread, async ({ openInput, cache }, argument) => {
      const source = await openInput(argument, { cache: true });
      source.beginDownload();
      const { length } = await source.read(0, source.size);
      source.close();
      return { length, notes: source.notes, list: await cache.list() };
    }, url, insecure);
    assert.deepEqual([length, list], [body.length, []]);
    assert.match(notes[0], /not kept for the next visit: the page is not served over HTTPS/);
  }
  const memory = await run("page", async ({ createEntry }) => {
    const writer = await createEntry("model.gguf", "conversion");
    await writer.write(9_000_000, Uint8Array.of(1, 2, 3));
    const source = await writer.finish(9_000_003);
    return { note: writer.note, bytes: Array.from(await source.read(8_999_999, 4)) };
  }, undefined, insecure);
  assert.deepEqual(memory.bytes, [0, 1, 2, 3]);
  assert.match(memory.note, /HTTPS/);
  await insecure.close();
});

test("no room: the code is quota, with the bytes that are needed and free", async () => {
  const other = await startServer({ root: bundled.folder });
  serveRunner(other);
  other.file("/model.pte", { body, bytesPerSecond: 20 * MIB });
  const full = await browser.open(other.origin);
  const session = await browser.context.newCDPSession(full);
  const limit = (quotaSize) => session.send("Storage.overrideQuotaForOrigin", { origin: other.origin, quotaSize });
  try {
    await limit(6 * MIB);
    await assert.rejects(run("worker", load, { url: `${other.origin}/model.pte` }, full), fails("quota", /storage is full: 14 MB are needed/));
    const far = run("page", ({ createEntry }) => createEntry("far", "conversion", { expectedBytes: 1e15 }), undefined, full);
    await assert.rejects(far, fails("quota", /1000000000 MB are needed, \d+ MB are free/));
    for (const thread of THREADS) {
      await limit(64 * MIB);
      const loading = run(thread, load, { url: `${other.origin}/model.pte` }, full);
      setTimeout(() => limit(5 * MIB), 150);
      await assert.rejects(loading, fails("quota", /storage is full/));
    }
    await limit(64 * MIB);
    assert.equal((await run("worker", load, { url: `${other.origin}/model.pte` }, full)).digest, digest, "and goes on when there is room");
  } finally {
    await full.close();
    await other.close();
  }
});

test("a chosen file is read in slices; one that changed or vanished is named", async () => {
  const path = join(folder, "chosen.pte");
  await writeFile(path, body);
  await page.evaluate(() => document.body.replaceChildren(Object.assign(document.createElement("input"), { type: "file" })));
  await page.setInputFiles("input", path);
  const read = async ({ openInput }, at) => {
    const source = await openInput(document.querySelector("input").files[0], { cache: true });
    return { name: source.name, identity: source.identity, size: source.size, bytes: Array.from(await source.read(at, 10)) };
  };
  const { name, identity, size, bytes } = await run("page", read, 9 * MIB);
  assert.deepEqual([name, size, bytes], ["chosen.pte", body.length, Array.from(body.subarray(9 * MIB, 9 * MIB + 10))]);
  assert.match(identity, /^file:chosen\.pte:13631611:\d+$/);
  await writeFile(path, body.subarray(0, 10 * MIB));
  await assert.rejects(run("page", read, 9 * MIB), fails("io", /chosen\.pte: .*Choose it again/));
  await rm(path);
  await assert.rejects(run("page", read, 0), fails("io", /chosen\.pte: .*Choose it again/));
});

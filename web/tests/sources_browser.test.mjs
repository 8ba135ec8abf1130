// Sources in Chromium, on the page's thread and in workers: visits, versions, other origins, chosen files. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { MIB, randomBytes, sha256 } from "./support/bytes.mjs";
import { startServer } from "./support/server.mjs";
import { body, browser, closeAll, digest, entry, fails, load, openAll, page, run, sent, serve, server, THREADS } from "./support/sources.mjs";

let folder;
before(async () => {
  await openAll();
  folder = await mkdtemp(join(tmpdir(), "pteryx-sources-"));
});
after(async () => {
  await closeAll();
  await rm(folder, { recursive: true });
});

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

  test(`${thread}: where only tables are read, nothing is kept, and a whole copy is used`, async () => {
    const path = `/tables-${thread}.pte`;
    const tables = async ({ openInput }, { url }) => {
      const source = await openInput(url, { cache: true, tablesOnly: true });
      const bytes = [...(await source.read(0, 4)), ...(await source.read(source.size - 4, 4))];
      const { cached } = source;
      source.close();
      return { cached, bytes };
    };
    const bytes = [...body.subarray(0, 4), ...body.subarray(-4)];
    server.clearLog();
    assert.deepEqual(await run(thread, tables, { url: serve(path, { bytesPerSecond: 10 * MIB }) }), { cached: false, bytes });
    assert.ok(sent(path) < body.length / 2, `${sent(path)} bytes`);
    assert.equal(await entry(server.origin + path), undefined);
    // What was begun before stays as it is.
    const url = serve(path, { bytesPerSecond: 40 * MIB });
    await assert.rejects(run(thread, load, { url, stopAt: 9 * MIB }), fails("cancelled", /cancelled/));
    assert.deepEqual(await run(thread, tables, { url }), { cached: false, bytes });
    assert.equal((await entry(url)).presentBytes, 8 * MIB);
    await run(thread, load, { url: serve(path) });
    server.clearLog();
    assert.deepEqual(await run(thread, tables, { url }), { cached: true, bytes });
    assert.ok(sent(path) < 100);
    // A server that sends nothing but the whole file has it sent once.
    const whole = serve(`/whole-${thread}.pte`, { ranges: false });
    assert.deepEqual(await run(thread, tables, { url: whole }), { cached: false, bytes });
    assert.notEqual(await entry(whole), undefined);
  });

  test(`${thread}: what is no model is not kept`, async () => {
    const url = serve(`/archive-${thread}.pte`, { body: Buffer.concat([Buffer.from("PK\x03\x04"), body.subarray(0, 5 * MIB)]) });
    await assert.rejects(run(thread, load, { url }), fails("invalid-program", /archive/));
    assert.equal(await entry(url), undefined);
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
}

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

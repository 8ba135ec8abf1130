// The cache of sources in Chromium, on the page's thread and in workers: what is written, what counts, what goes. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { MIB } from "./support/bytes.mjs";
import { body, browser, closeAll, digest, entry, fails, load, openAll, page, run, sent, serve, server, startSite, THREADS } from "./support/sources.mjs";

before(openAll);
after(closeAll);

for (const thread of THREADS) {
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

test("no room: the code is quota, with the bytes that are needed and free", async () => {
  const other = await startSite();
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

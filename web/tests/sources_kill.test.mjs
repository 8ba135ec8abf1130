// A browser that is killed during a download and a conversion, and started again. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { launchBrowser } from "./support/browser.mjs";
import { bundle } from "./support/bundle.mjs";
import { MIB, randomBytes, sha256 } from "./support/bytes.mjs";
import { inPage, serveRunner } from "./support/in_page.mjs";
import { startServer } from "./support/server.mjs";

const body = randomBytes(26 * MIB + 9);
let bundled, server, profile;

before(async () => {
  bundled = await bundle(["src/source/index.ts"]);
  server = await startServer({ root: bundled.folder });
  serveRunner(server);
  profile = await mkdtemp(join(tmpdir(), "pteryx-profile-"));
});
after(async () => {
  await server.close();
  await bundled.remove();
  await rm(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
});

function run(page, thread, task, argument) {
  return inPage(page, { thread, modules: ["/source.js"] }, task, argument);
}
async function download({ openInput }, url) {
  const source = await openInput(url, { cache: true });
  source.beginDownload();
  await source.complete();
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", await source.read(0, source.size)));
  source.close();
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
/** Writes a conversion and never finishes. */
async function convert({ createEntry }) {
  const writer = await createEntry("model.gguf", "conversion", { tag: "q4" });
  for (let at = 0; ; at = (at + 1_000_000) % 30_000_000) await writer.write(at, new Uint8Array(1_000_000).fill(7));
}
/** Every file of the cache. */
async function files() {
  const root = await (await navigator.storage.getDirectory()).getDirectoryHandle("pteryx");
  const folders = await Array.fromAsync(root.entries());
  return Promise.all(folders.map(async ([name, folder]) => [name, (await Array.fromAsync(folder.keys())).sort()]));
}
const list = (page) => run(page, "page", ({ cache }) => cache.list());

for (const thread of ["worker", "page"]) {
  test(`${thread}: nothing half-written is taken for whole, and the download goes on`, async () => {
    const path = `/model-${thread}.pte`;
    const url = server.origin + path;
    server.file(path, { body, bytesPerSecond: 14 * MIB });
    let browser = await launchBrowser({ profile });
    try {
      const page = await browser.open(server.origin);
      const gone = [run(page, thread, download, url), run(page, thread, convert)].map((work) => work.then(() => "finished", () => "killed"));
      while (!((await list(page)).find((entry) => entry.url === url)?.presentBytes >= 4 * MIB)) await sleep(30);
      await sleep(100);
      await browser.kill();
      assert.deepEqual(await Promise.all(gone), ["killed", "killed"]);

      browser = await launchBrowser({ profile });
      const next = await browser.open(server.origin);
      const before = await list(next);
      assert.deepEqual(before.filter((entry) => entry.kind === "conversion"), [], "an unfinished conversion does not count");
      const kept = before.find((entry) => entry.url === url);
      assert.ok(kept.presentBytes >= 4 * MIB && kept.presentBytes < body.length && !kept.complete, `${kept.presentBytes} bytes were kept`);
      const left = await run(next, "page", files);
      assert.equal(left.length, before.length, "and what it wrote is removed");
      assert.deepEqual(left.flatMap(([, names]) => names.filter((name) => !/^(b\d+|record\.json)$/.test(name))), [], "nor is anything left beside the blocks");
      server.clearLog();
      server.file(path, { body });
      assert.equal(await run(next, thread, download, url), sha256(body));
      const requests = server.requests(path);
      assert.equal(requests[0].range, `bytes=${kept.presentBytes}-`);
      assert.ok(requests.reduce((sum, { sent }) => sum + sent, 0) <= body.length - kept.presentBytes);
      assert.equal((await list(next)).find((entry) => entry.url === url).complete, true);
    } finally {
      await browser.close().catch(() => {});
    }
  });
}

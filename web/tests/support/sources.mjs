// Tests of sources in Chromium: a browser, a server and a page of it, and loads of files that the server has. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { launchBrowser } from "./browser.mjs";
import { bundle } from "./bundle.mjs";
import { MIB, randomBytes, sha256 } from "./bytes.mjs";
import { inPage, serveRunner } from "./in_page.mjs";
import { startServer } from "./server.mjs";

/** What files hold unless a test says otherwise. */
export const body = randomBytes(13 * MIB + 123);
export const digest = sha256(body);
export const THREADS = ["worker", "page"];
export let server, browser, page;
let bundled;

/** A server, and so an origin, of its own. */
export async function startSite() {
  const site = await startServer({ root: bundled.folder });
  serveRunner(site);
  return site;
}
export async function openAll() {
  bundled = await bundle(["src/source/index.ts"]);
  server = await startSite();
  browser = await launchBrowser({ args: ["--host-resolver-rules=MAP pteryx.test 127.0.0.1"] });
  page = await browser.open(server.origin);
}
export async function closeAll() {
  await browser.close();
  await server.close();
  await bundled.remove();
}

export function serve(path, how = {}) {
  server.file(path, { body, ...how });
  return server.origin + path;
}
export function run(thread, task, argument, on = page) {
  return inPage(on, { thread, modules: ["/source.js"] }, task, argument);
}
/** Opens, reads the tables and then everything, and closes. `stopAt`: aborts once so many bytes are there. */
export async function load({ openInput }, { url, stopAt, ...options }) {
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
export async function entry(url) {
  const list = await run("page", ({ cache }) => cache.list());
  return list.find((found) => found.url === url);
}
export function sent(path) {
  return server.requests(path).reduce((sum, request) => sum + request.sent, 0);
}
export function fails(code, pattern) {
  return (error) => {
    assert.equal(error.name, "PteryxError", error.stack);
    assert.equal(error.code, code, error.message);
    assert.match(error.message, pattern);
    return true;
  };
}

// The server of `make web`. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { servePage } from "../page/serve.mjs";

let base;
let server;
before(async () => {
  base = await mkdtemp(join(tmpdir(), "pteryx-serve-"));
  await mkdir(join(base, "page"));
  await writeFile(join(base, "secret.txt"), "secret");
  await writeFile(join(base, "page/index.html"), "<p>page");
  await writeFile(join(base, "page/a.wasm"), "0123456789");
  await writeFile(join(base, "page/empty.js"), "");
  server = await servePage({ folder: join(base, "page") });
});
after(async () => {
  await server?.close();
  await rm(base, { recursive: true, force: true });
});

/** fetch() would tidy the path up before it is sent. */
function get(path, headers = {}, method = "GET") {
  return new Promise((resolve, reject) => {
    request(server.origin, { path, headers, method }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (part) => (body += part)).on("end", () => resolve({ status: response.statusCode, headers: response.headers, body }));
    }).on("error", reject).end();
  });
}

test("files have their types and the page is isolated", async () => {
  const page = await get("/");
  assert.equal(page.status, 200);
  assert.match(page.headers["content-type"], /^text\/html/);
  assert.equal(page.headers["cross-origin-opener-policy"], "same-origin");
  assert.equal(page.headers["cross-origin-embedder-policy"], "require-corp");
  assert.equal((await get("/a.wasm")).headers["content-type"], "application/wasm");
  assert.equal((await get("/empty.js")).body, "");
  const plain = await servePage({ folder: join(base, "page"), isolated: false });
  assert.equal((await fetch(plain.origin)).headers.get("cross-origin-embedder-policy"), null);
  await plain.close();
});

test("ranges", async () => {
  const part = await get("/a.wasm", { Range: "bytes=2-4" });
  assert.deepEqual([part.status, part.body, part.headers["content-range"]], [206, "234", "bytes 2-4/10"]);
  assert.equal((await get("/a.wasm", { Range: "bytes=-3" })).body, "789");
  assert.equal((await get("/a.wasm", { Range: "bytes=8-99" })).body, "89");
  assert.equal((await get("/a.wasm", { Range: "bytes=10-" })).status, 416);
  assert.equal((await get("/a.wasm", { Range: "lines=1-2" })).status, 200);
  assert.equal((await get("/a.wasm", {}, "HEAD")).headers["content-length"], "10");
});

test("an unchanged file is not sent again", async () => {
  const { etag } = (await get("/a.wasm")).headers;
  assert.equal((await get("/a.wasm", { "If-None-Match": etag })).status, 304);
});

test("nothing outside the folder is served", async () => {
  for (const path of ["/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "//../secret.txt", "/a.wasm%00", "/missing", "/%E0%A4%A"]) {
    const answer = await get(path);
    assert.ok(answer.status === 404 || answer.status === 400, `${path}: ${answer.status}`);
    assert.ok(!answer.body.includes("secret"));
  }
  assert.equal((await get("/", {}, "POST")).status, 405);
});

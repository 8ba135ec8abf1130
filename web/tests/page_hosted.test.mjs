// The built page where people put it: in a folder of a plain static server, and on the server of `make web`. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { buildPage } from "../page/build.mjs";
import { servePage } from "../page/serve.mjs";
import { launchBrowser } from "./support/browser.mjs";
import { chat, screenshot } from "./support/page.mjs";
import { startServer } from "./support/server.mjs";

let root;
let folder;
let browser;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "pteryx-hosted-"));
  folder = join(root, "a/b");
  await buildPage({ folder });
  await cp(fileURLToPath(new URL("../../tests/fixtures/web/chat.pte", import.meta.url)), join(folder, "chat.pte"));
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await rm(root, { recursive: true, force: true });
});

async function talk(address) {
  const page = await browser.open(address);
  await chat.load(page, "chat.pte", "cpu");
  await chat.ready(page);
  await chat.settings(page, { Temperature: 0, "Maximum answer length": 12 });
  await chat.ask(page, "Hello there");
  return { page, answer: await chat.answer(page) };
}

test("under /a/b/ of a plain server: nothing is asked for outside, and a reload goes on from the cache", async () => {
  const server = await startServer({ root });
  try {
    const { page, answer } = await talk(`${server.origin}/a/b/`);
    assert.deepEqual(server.log.filter(({ path }) => !path.startsWith("/a/b/")), []);
    server.clearLog();
    await page.reload();
    await chat.ready(page);
    assert.equal(await page.locator(".answer .markdown").innerText(), answer);
    await page.getByRole("button", { name: "Regenerate" }).click();
    assert.equal(await chat.answer(page), answer);
    assert.deepEqual(server.log.filter(({ path }) => !path.startsWith("/a/b/")), []);
    const sent = server.requests("/a/b/chat.pte").reduce((sum, request) => sum + request.sent, 0);
    assert.ok(sent <= 1, `${sent} bytes of the model were sent again`);
    await page.close();
  } finally {
    await server.close();
  }
});

for (const isolated of [true, false]) {
  test(`on the server of make web${isolated ? "" : " --plain"}: a chat on the CPU has ${isolated ? "threads" : "no threads"}`, async () => {
    const server = await servePage({ folder, isolated });
    const requested = [];
    const note = (request) => requested.push(new URL(request.url()).pathname.replace("/pteryx/", ""));
    browser.context.on("request", note);
    try {
      const { page, answer } = await talk(`${server.origin}/`);
      assert.ok(answer.length > 0);
      assert.equal(await page.evaluate(() => crossOriginIsolated), isolated);
      const parts = requested.filter((name) => /\.wasm$|^thread\.js$/.test(name));
      assert.deepEqual([...new Set(parts)].sort(), isolated ? ["pteryx_cpu_threads.wasm", "thread.js"] : ["pteryx_cpu.wasm"]);
      if (isolated) await screenshot(page, "chat-isolated");
      await page.close();
    } finally {
      browser.context.off("request", note);
      await server.close();
    }
  });
}

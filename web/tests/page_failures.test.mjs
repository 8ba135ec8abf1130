// What can go wrong with files, servers and the browser, as the page says it; on the CPU. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, test } from "node:test";
import { chat, drop, failure, fixture, screenshot, startPage } from "./support/page.mjs";
import { png } from "./support/pictures.mjs";

let site;
let program;
before(async () => {
  site = await startPage();
  program = await fixture("web/chat.pte");
});
after(() => site?.close());
beforeEach(async () => {
  await site.forget();
  await site.inWorker(null);
  site.server.file("/chat.pte", { body: program });
  site.server.clearLog();
});

/** What the page says of a model that is served like this. The page lives on: a good model loads after it. */
async function refusal(how, { name = "model.pte", before: prepare } = {}) {
  if (how) site.server.file(`/${name}`, how);
  const page = await site.open();
  await prepare?.(page);
  await chat.load(page, name);
  const found = await failure(page, ".outcome", 60_000);
  assert.ok(await found.card.getByRole("heading").isVisible());
  assert.equal(await found.card.getAttribute("role"), "alert");
  site.server.remove(`/${name}`);
  return { ...found, page };
}
/** Loads a good model, until the cache has all of it. */
async function keep(page) {
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  await page.evaluate(async () => {
    const { cache } = await import("./pteryx/index.js");
    while (!(await cache.list())[0]?.complete) await new Promise((resolve) => setTimeout(resolve, 20));
  });
}
async function recovers(page) {
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  await page.close();
}

test("a missing file: the server's answer is named, with its status", async () => {
  const { code, text, page } = await refusal(null, { name: "missing.pte" });
  assert.equal(code, "http");
  assert.match(text, /missing\.pte: the server answered 404/);
  assert.equal(await page.getByLabel("Model URL").inputValue(), "missing.pte");
  await screenshot(page, "failure-404");
  await recovers(page);
});

test("offline: said as such, and trying again works once the network is back", async () => {
  const page = await site.open();
  await page.getByText("or drop a .pte").waitFor();
  // The package is there: only the model is asked for without a network.
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  await page.getByRole("button", { name: "Change model" }).click();
  await page.getByRole("button", { name: "Delete chat.pte" }).click();
  await site.browser.context.setOffline(true);
  await chat.load(page, "chat.pte");
  const { code, text, card } = await failure(page, ".outcome").finally(() => site.browser.context.setOffline(false));
  assert.equal(code, "network");
  assert.match(text, /this device is offline/);
  await card.getByRole("button", { name: "Try again" }).click();
  await page.locator(".model-panel").waitFor({ state: "hidden" });
  await page.close();
});

test("a server that is gone: cannot be reached", async () => {
  const page = await site.open();
  await page.getByText("or drop a .pte").waitFor();
  await chat.load(page, "http://127.0.0.1:9/model.pte");
  const { code, text } = await failure(page, ".outcome");
  assert.equal(code, "network");
  assert.match(text, /http:\/\/127\.0\.0\.1:9\/model\.pte: the server cannot be reached, or does not allow pages of other origins \(CORS\)/);
  await recovers(page);
});

test("a file that is cut short: where it ends", async () => {
  const { code, text, page } = await refusal({ body: program.subarray(0, 300_000) });
  assert.equal(code, "invalid-program");
  assert.match(text, /model\.pte/);
  assert.match(text, /3000\d\d|473\d\d\d/);
  await recovers(page);
});

test("a connection that breaks off, again and again: at which byte", async () => {
  const { code, text, page } = await refusal({ body: program, ranges: false, dropAfter: Array(20).fill(100_000) });
  assert.equal(code, "network");
  assert.match(text, /(broke off|ended) at byte \d+ of 473678/);
  await recovers(page);
});

test("a web page or a picture in place of a model: what it is", async () => {
  const html = await refusal({ body: Buffer.from("<!doctype html><title>Sign in</title>"), type: "text/html; charset=utf-8" });
  assert.equal(html.code, "invalid-program");
  assert.match(html.text, /is a web page \(text\/html; charset=utf-8\), not a model/);
  await screenshot(html.page, "failure-web-page");
  await html.page.close();
  const picture = await refusal({ body: png(64, 64, (x, y) => [x, y, 9]), type: "image/png" }, { name: "model.png" });
  assert.equal(picture.code, "invalid-program");
  assert.match(picture.text, /model\.png: expected a model \(\.pte or \.gguf\), got a PNG picture/);
  await recovers(picture.page);
});

test("a damaged file: refused, and not kept as whole", async () => {
  const damaged = Buffer.from(program);
  for (let i = 40; i < 4000; i += 3) damaged[i] ^= 0xa5;
  const { code, text, page } = await refusal({ body: damaged });
  assert.equal(code, "invalid-program");
  assert.match(text, /model\.pte/);
  await recovers(page);
});

test("a copy in the cache that was damaged: it is downloaded again", async () => {
  const page = await site.open();
  await keep(page);
  await page.evaluate(async () => {
    const kept = await (await navigator.storage.getDirectory()).getDirectoryHandle("pteryx");
    for await (const folder of kept.values()) {
      const writable = await (await folder.getFileHandle("b0")).createWritable({ keepExistingData: true });
      await writable.write({ type: "write", position: 40, data: new Uint8Array(4000).fill(0xa5) });
      await writable.close();
    }
  });
  const again = await site.open();
  await chat.load(again, "chat.pte");
  const { code, card } = await failure(again, ".outcome");
  assert.equal(code, "invalid-program");
  await screenshot(again, "failure-damaged-copy");
  await page.close(); // what another tab uses is not removed
  await card.getByRole("button", { name: "Download it again" }).click();
  await chat.ready(again);
  await again.close();
});

for (const [tab, go] of [["inspect", "Inspect"], ["run", "Load"]]) {
  test(`${tab}: no room for a file that can only be had as a whole: a load without the cache, and the list of what is in it`, async (t) => {
    // The browser's own cache would answer with parts.
    site.server.file("/whole.pte", { body: program, ranges: false, headers: { "Cache-Control": "no-store" } });
    const page = await site.open();
    await keep(page);
    await page.goto(`${site.server.origin}/#${tab}`);
    const session = await site.browser.context.newCDPSession(page);
    await session.send("Storage.overrideQuotaForOrigin", { origin: site.server.origin, quotaSize: 200_000 });
    t.after(() => session.send("Storage.overrideQuotaForOrigin", { origin: site.server.origin }).then(() => page.close()));
    const open = async () => {
      await page.locator(`#${tab}-url`).fill("whole.pte");
      await page.locator(`#panel-${tab}`).getByRole("button", { name: go, exact: true }).click();
      return failure(page, `#panel-${tab} .outcome`);
    };
    const { code, card } = await open();
    assert.equal(code, "quota");
    await card.getByRole("button", { name: "Show the cache" }).click();
    await page.locator(".cache li", { hasText: "chat.pte" }).waitFor();
    await page.waitForFunction(() => document.activeElement.id === "cache-title");
    await page.locator(`#tab-${tab}`).click();
    await (await open()).card.getByRole("button", { name: "Load without caching it" }).click();
    await page.locator(tab === "inspect" ? ".report" : "#panel-run .inputs fieldset").first().waitFor();
    site.server.remove("/whole.pte");
  });
}

test("an empty file", async () => {
  const { code, text, page } = await refusal({ body: Buffer.alloc(0) });
  assert.equal(code, "invalid-program");
  assert.match(text, /is empty/);
  await recovers(page);
});

test("no room in the browser's storage: how much is needed, and a load without the cache", async () => {
  const page = await site.open();
  const session = await site.browser.context.newCDPSession(page);
  await session.send("Storage.overrideQuotaForOrigin", { origin: site.server.origin, quotaSize: 200_000 });
  await chat.load(page, "chat.pte");
  const { code, text, card } = await failure(page, ".outcome");
  assert.equal(code, "quota");
  assert.match(text, /0\.5 MB are needed/);
  await screenshot(page, "failure-quota");
  await card.getByRole("button", { name: "Load without caching it" }).click();
  await chat.ready(page);
  await session.send("Storage.overrideQuotaForOrigin", { origin: site.server.origin });
  await page.getByRole("button", { name: "Change model" }).click();
  await chat.load(page, "chat.pte");
  await page.locator(".cache li", { hasText: "chat.pte" }).waitFor({ state: "attached" });
  await page.close();
});

test("a model that was unloaded for one that has no room either: the page is as before the first", async () => {
  await site.inWorker(() => addEventListener("message", (event) => {
    const { id, name, args } = event.data;
    if (name !== "load" || !args[0].input.endsWith("large.pte")) return;
    event.stopImmediatePropagation();
    postMessage({ id, error: { code: "out-of-memory", message: "large.pte: 9000000000 bytes do not fit" } });
  }));
  const name = "A-Model-Whose-Name-Is-Wider-Than-A-Phone-135M-Instruct-Q4_K_M.pte";
  site.server.file(`/${name}`, { body: program });
  const page = await site.open();
  await page.setViewportSize({ width: 360, height: 740 });
  await chat.load(page, name);
  await chat.ready(page);
  await page.getByRole("button", { name: "Change model" }).click();
  await chat.load(page, "large.pte");
  const { card } = await failure(page, ".outcome");
  await screenshot(page, "failure-out-of-memory-phone");
  assert.ok(await card.evaluate((element) => element.scrollWidth <= element.clientWidth), "the name fits on the button");
  const unload = card.getByRole("button", { name: `Unload ${name} and try again` });
  await unload.click();
  await unload.waitFor({ state: "detached" });
  assert.equal((await failure(page, ".outcome")).code, "out-of-memory");
  assert.ok(await page.locator(".bar").isHidden());
  assert.ok(await page.getByRole("heading", { name: "Chat with a model of your own" }).isVisible());
  assert.equal(await page.getByLabel("Your message").getAttribute("placeholder"), "Load a model first");
  await page.locator(".cache li").getByRole("button", { name: `Load ${name}` }).click();
  await chat.ready(page);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("the WebAssembly module is missing: which file, and the server's answer", async () => {
  const { code, text, page } = await refusal({ body: program }, { before: () => site.server.file("/pteryx/pteryx_cpu.wasm", { body: Buffer.alloc(0), status: 404 }) });
  assert.equal(code, "wasm");
  assert.match(text, /pteryx\/pteryx_cpu\.wasm cannot be used: the server answered 404/);
  site.server.remove("/pteryx/pteryx_cpu.wasm");
  await recovers(page);
});

test("the WebAssembly module is something else", async () => {
  const { code, text, page } = await refusal({ body: program }, { before: () => site.server.file("/pteryx/pteryx_cpu.wasm", { body: Buffer.from("<!doctype html>"), type: "text/html" }) });
  assert.equal(code, "wasm");
  assert.match(text, /pteryx_cpu\.wasm cannot be used/);
  site.server.remove("/pteryx/pteryx_cpu.wasm");
  await page.close();
});

test("the worker is missing", async () => {
  const { code, text, page } = await refusal({ body: program }, { before: () => site.server.file("/pteryx/worker.js", { body: Buffer.alloc(0), status: 404 }) });
  assert.equal(code, "wasm");
  assert.match(text, /worker\.js cannot be started/);
  site.server.remove("/pteryx/worker.js");
  await recovers(page);
});

test("a security policy that forbids WebAssembly: the policy is named", async () => {
  const strict = await startPage({ headers: { "Content-Security-Policy": "script-src 'self'" } });
  try {
    strict.server.file("/chat.pte", { body: program });
    const page = await strict.open();
    await chat.load(page, "chat.pte");
    const { code, text } = await failure(page, ".outcome");
    assert.equal(code, "wasm");
    assert.match(text, /Content Security Policy|unsafe-eval/);
    assert.match(text, /'wasm-unsafe-eval'/);
    await screenshot(page, "failure-policy");
  } finally {
    await strict.close();
  }
});

test("operators that nothing here has: all of them at once, before the weights are fetched", async () => {
  const renamed = Buffer.from(program);
  const rename = (from, to) => {
    const at = renamed.indexOf(from);
    assert.ok(at > 0, from);
    renamed.write(to, at, "latin1");
  };
  rename("et_vk.rms_norm", "et_vk.zzz_norm");
  rename("aten.sigmoid", "aten.zzzmoid");
  const { code, text, card, page } = await refusal({ body: renamed, bytesPerSecond: 150_000 });
  assert.equal(code, "unsupported");
  assert.match(text, /zzz_norm/);
  assert.match(text, /zzzmoid/);
  const sent = site.server.requests("/model.pte").reduce((sum, request) => sum + request.sent, 0);
  assert.ok(sent < program.length * 0.8, `${sent} of ${program.length} bytes were sent`);
  await screenshot(page, "failure-unsupported");
  site.server.file("/model.pte", { body: renamed });
  await card.getByRole("button", { name: "Inspect the file" }).click();
  await page.locator('#panel-inspect [data-verdict="no"]').waitFor();
  assert.match(await page.locator("#panel-inspect").innerText(), /zzz_norm[\s\S]*not supported/);
  await screenshot(page, "inspect-unsupported");
  await page.close();
});

test("neither WebGPU nor SIMD: what to do", async () => {
  const old = await startPage({ args: ["--js-flags=--no-enable-sse4-1"] });
  try {
    old.server.file("/chat.pte", { body: program });
    const page = await old.open();
    await page.locator(".notice", { hasText: "neither WebGPU nor WebAssembly SIMD" }).waitFor();
    await chat.load(page, "chat.pte");
    const { code, text } = await failure(page, ".outcome");
    assert.equal(code, "no-device");
    assert.match(text, /WebAssembly has no SIMD here.*WebGPU is there, but it offers no GPU/s);
    assert.match(text, /Update/);
    await screenshot(page, "failure-no-device");
  } finally {
    await old.close();
  }
});

test("a view whose script cannot be fetched: said in its tab, and it opens once the server is back", async () => {
  const page = await site.open();
  await page.route(/chunks\/(inspect|run)_view/, (route) => route.abort());
  for (const tab of ["inspect", "run"]) {
    await page.click(`#tab-${tab}`);
    const { code, text } = await failure(page, `#panel-${tab}`);
    assert.equal(code, "wasm");
    assert.match(text, /a script of this page could not be loaded/);
    await drop(page, [{ name: "chat.pte", body: program }]);
    await page.waitForTimeout(200);
    assert.equal(await page.locator(`#panel-${tab} .card.error`).count(), 1);
  }
  assert.deepEqual(page.problems, []);
  await page.unroute(/chunks\/(inspect|run)_view/);
  await page.locator("#panel-run").getByRole("button", { name: "Reload the page" }).click();
  await page.getByRole("heading", { name: "Run a program" }).waitFor();
  await page.close();
});

test("a cached model that cannot be deleted: why, and trying again works", async () => {
  const page = await site.open();
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  await page.getByRole("button", { name: "Change model" }).click();
  const row = page.locator(".cache li");
  await row.waitFor();
  await page.evaluate(() => {
    const { removeEntry } = FileSystemDirectoryHandle.prototype;
    FileSystemDirectoryHandle.prototype.removeEntry = async () => {
      FileSystemDirectoryHandle.prototype.removeEntry = removeEntry;
      throw new DOMException("The disk is gone", "UnknownError");
    };
  });
  await row.getByRole("button", { name: "Delete chat.pte" }).click();
  const { code, text, card } = await failure(page, ".cache");
  assert.equal(code, "io");
  assert.match(text, /The disk is gone/);
  await card.getByRole("button", { name: "Try again" }).click();
  await row.waitFor({ state: "detached" });
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("every failure has its own words and a way on", async () => {
  const source = await readFile(new URL("../src/errors.ts", import.meta.url), "utf8");
  const codes = [...source.matchAll(/^\s+\| "([a-z-]+)"/gm)].map(([, code]) => code);
  assert.ok(codes.length >= 14, codes.join());
  const texts = await readFile(new URL("../page/src/error_texts.ts", import.meta.url), "utf8");
  for (const code of codes) assert.match(texts, new RegExp(`^  "?${code}"?: \\{\\n    title: "[^"]+",\\n    next: "[^"]+\\.",`, "m"), code);
});

// GGUF files on the page: dropped and named, converted in sight, kept, refused with a reason. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { makeGguf } from "./support/gguf.mjs";
import { kLarge } from "./support/gguf_programs.mjs";
import { chat, drop, failure, screenshot, startPage } from "./support/page.mjs";

let site;
before(async () => {
  site = await startPage();
  site.server.file("/large.gguf", { body: makeGguf(kLarge) });
});
after(() => site?.close());
beforeEach(async () => {
  await site.forget();
  site.server.clearLog();
});
/** Keeps what the bar says, in `window.seen`; `cancel`: as soon as it converts. */
function watch(page, cancel = false) {
  return page.evaluate((stop) => {
    window.seen = [];
    new MutationObserver((_, observer) => {
      const text = document.querySelector(".progress .row p")?.innerText;
      if (text && text !== window.seen.at(-1)) window.seen.push(text);
      if (!stop || !text?.startsWith("Converting")) return;
      observer.disconnect();
      document.querySelector(".progress button").click();
    }).observe(document.querySelector("#panel-chat"), { subtree: true, childList: true, characterData: true });
  }, cancel);
}
/** At least so many lines of what was kept are about the conversion, with bytes. */
async function converting(page, least) {
  const seen = await page.evaluate(() => window.seen);
  assert.ok(seen.filter((text) => /^Converting the model (\d+(\.\d)? \w+ of )?16 MB/.test(text)).length >= least, seen.join("\n"));
}
const requests = (pattern) => site.server.log.filter(({ path }) => pattern.test(path)).map(({ path }) => path);

test("an address of a GGUF file is converted in sight, and the next visit loads what was kept", async () => {
  const page = await site.open();
  await watch(page);
  await chat.load(page, "large.gguf");
  await chat.ready(page);
  await converting(page, 1); // most of it is done while the file comes
  assert.equal(await page.locator(".bar strong").innerText(), "large.gguf");
  await page.close();

  site.server.clearLog();
  const next = await site.open();
  await next.getByText("On this device").waitFor();
  assert.match(await next.locator(".cache li").innerText(), /large\.gguf[^]*MB · converted · /);
  await next.getByRole("button", { name: "Load large.gguf" }).click();
  await chat.ready(next);
  assert.deepEqual(requests(/pteryx_convert\.wasm/), []);
  await chat.settings(next, { Temperature: 0, "Maximum answer length": 4 });
  await chat.ask(next, "Hello");
  await chat.answer(next);
  assert.deepEqual(next.problems, []);
  await next.close();
});

test("a dropped GGUF file is converted in sight", async () => {
  const page = await site.open();
  await watch(page);
  await drop(page, [{ name: "mine.gguf", body: site.server.file("/large.gguf").body }]);
  await chat.ready(page);
  await converting(page, 3);
  assert.equal(await page.locator(".bar strong").innerText(), "mine.gguf");
  assert.equal(requests(/pteryx_convert\.wasm/).length, 1);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("what was made of a dropped GGUF file is loaded from the list, without the file", async () => {
  const page = await site.open();
  await drop(page, [{ name: "mine #1.gguf", body: site.server.file("/large.gguf").body }]);
  await chat.ready(page);
  await chat.settings(page, { Temperature: 0, "Maximum answer length": 4 });
  await chat.ask(page, "Hello");
  const answer = await chat.answer(page);
  await page.close();

  site.server.clearLog();
  const next = await site.open();
  await next.getByText("On this device").waitFor();
  assert.match(await next.locator(".cache li").innerText(), /mine #1\.gguf[^]*MB · converted · /);
  await screenshot(next, "cached-conversion");
  await next.getByRole("button", { name: "Load mine #1.gguf" }).click();
  await chat.ready(next);
  assert.equal(await next.locator(".bar strong").innerText(), "mine #1.gguf");
  assert.deepEqual(requests(/pteryx_convert\.wasm|gguf/), []);
  await next.getByRole("button", { name: "New chat" }).click();
  await chat.ask(next, "Hello");
  assert.equal(await chat.answer(next), answer);
  assert.deepEqual(next.problems, []);
  await next.close();
});

test("a conversion that another tab has deleted is said to be gone", async () => {
  const page = await site.open();
  await drop(page, [{ name: "gone.gguf", body: makeGguf() }]);
  await chat.ready(page);
  await page.close();
  const next = await site.open();
  await next.getByText("On this device").waitFor();
  await next.evaluate(async () => (await import("/pteryx/index.js")).cache.clear());
  await next.getByRole("button", { name: "Load gone.gguf" }).click();
  const { code, text } = await failure(next, ".outcome");
  assert.equal(code, "io");
  assert.match(text, /gone\.gguf: is not in the cache any more/);
  await next.close();
});

test("a conversion can be cancelled and started again", async () => {
  const page = await site.open();
  await watch(page, true);
  await chat.load(page, "large.gguf");
  assert.equal((await failure(page, ".outcome")).code, "cancelled");
  await page.getByRole("button", { name: "Try again" }).click();
  await chat.ready(page);
  await page.close();
});

test("a GGUF file that cannot be converted says why", async () => {
  const page = await site.open();
  const whole = makeGguf();
  await drop(page, [{ name: "cut.gguf", body: whole.subarray(0, whole.length - 5000) }]);
  const cut = await failure(page, ".outcome");
  assert.equal(cut.code, "invalid-program");
  assert.match(cut.text, /GGUF: tensor .*while reading cut\.gguf/s);
  await drop(page, [{ name: "mamba.gguf", body: makeGguf({ extra: { "general.architecture": "mamba" } }) }]);
  await page.locator('.outcome .card.error[data-code="unsupported"]').waitFor();
  assert.match((await failure(page, ".outcome")).text, /architecture 'mamba' is not supported \(llama, qwen2, qwen3 are\)/);
  await page.close();
});

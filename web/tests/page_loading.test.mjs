// How a model comes to the page: dropped and pasted files, links to the page, and storage that stays. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { chat, drop, failure, fixture, screenshot, startPage } from "./support/page.mjs";
import { png } from "./support/pictures.mjs";
import { startServer } from "./support/server.mjs";

let site;
let other;
let program;
before(async () => {
  site = await startPage();
  other = await startServer({ headers: { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "ETag, Content-Range, Accept-Ranges" } });
  program = await fixture("web/chat.pte");
  site.server.file("/chat.pte", { body: program });
  other.file("/chat.pte", { body: program });
});
after(async () => {
  await site?.close();
  await other?.close();
});
beforeEach(async () => {
  await site.forget();
  await site.inWorker(null);
  other.clearLog();
});

/** Pastes files and a text where the focus is, and gives whether the page took them. */
function paste(page, files, text = "") {
  return page.evaluate(([list, plain]) => {
    const clipboardData = new DataTransfer();
    for (const [name, body, type] of list) clipboardData.items.add(new File([Uint8Array.from(atob(body), (c) => c.charCodeAt(0))], name, { type }));
    if (plain) clipboardData.setData("text/plain", plain);
    const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
    document.activeElement.dispatchEvent(event);
    return event.defaultPrevented;
  }, [files.map(({ name, body, type = "" }) => [name, Buffer.from(body).toString("base64"), type]), text]);
}
const picture = () => ({ name: "picture.png", body: png(7, 5, (x, y) => [x * 30, y * 50, 99]), type: "image/png" });

test("a file that is dropped while a model is in use: progress, a way out, and the model stays", async () => {
  // In the worker: dropped files are not loaded.
  await site.inWorker(() => addEventListener("message", (event) => event.data.name === "load" && event.data.args[0].input instanceof File && event.stopImmediatePropagation()));
  const page = await site.open();
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  await chat.settings(page, { "Maximum answer length": 8 });
  await chat.ask(page, "Hello");
  await chat.answer(page);
  await drop(page, [{ name: "slow.pte", body: program }]);
  assert.ok(await page.getByRole("region", { name: "slow.pte" }).isVisible());
  const toggle = page.getByRole("button", { name: "Change model" });
  assert.equal(await toggle.getAttribute("aria-expanded"), "true");
  await screenshot(page, "chat-drop-in-use");
  await page.getByRole("button", { name: "Cancel" }).click();
  await toggle.click();
  assert.ok(await page.locator(".model-panel").isHidden());
  await chat.ask(page, "Hello again");
  await chat.answer(page);
  await page.close();
});

test("a load that waits for the package itself can be cancelled", async () => {
  site.server.file("/pteryx/index.js", { silent: true });
  const page = await site.open();
  await chat.load(page, "chat.pte");
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await failure(page, ".outcome", 5000)).code, "cancelled");
  for (const tab of ["inspect", "run"]) {
    await page.goto(`${site.server.origin}/#${tab}`);
    await page.locator(`#${tab}-url`).fill("/chat.pte");
    await page.locator(`#${tab}-url`).press("Enter");
    await page.locator(`#panel-${tab}`).getByRole("button", { name: "Cancel" }).click();
    assert.equal((await failure(page, `#panel-${tab}`, 5000)).code, "cancelled", tab);
  }
  await page.close();
  site.server.remove("/pteryx/index.js");
});

test("a file that cannot be used is refused in sight of the model in use", async () => {
  const page = await site.open();
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  await drop(page, [{ name: "notes.pte", body: Buffer.from("This is not a program, although its name says so.") }]);
  const { code, card } = await failure(page, ".outcome");
  assert.equal(code, "invalid-program");
  assert.ok(await card.isVisible());
  await page.close();
});

test("what is pasted into a chat loads nothing unless it is a model", async () => {
  const page = await site.open();
  await page.locator("#question").focus();
  assert.equal(await paste(page, [picture()]), false);
  assert.equal(await paste(page, [], "some text"), false);
  assert.equal(await paste(page, [picture()], "cells of a spreadsheet"), false);
  assert.equal(await page.locator(".outcome").innerText(), "");
  assert.equal(await paste(page, [picture(), { name: "mine.pte", body: program }]), true);
  await chat.ready(page);
  assert.equal(await page.locator(".bar strong").innerText(), "mine.pte");
  await page.close();
});

test("a picture can be pasted to run a program on, but a text that comes with one is a text", async () => {
  const page = await site.open("/#run");
  await page.locator("#panel-run h2").waitFor();
  await drop(page, [{ name: "upsample_nearest.pte", body: await fixture("ops/upsample_nearest.pte") }]);
  await page.locator("fieldset.input").waitFor();
  await page.locator("#input-0").selectOption("numbers");
  await page.locator("fieldset.input textarea").focus();
  assert.equal(await paste(page, [picture()], "1\t2\t3"), false);
  assert.equal(await page.locator("fieldset.input canvas.preview").count(), 0);
  assert.equal(await paste(page, [picture()]), true);
  await page.locator("fieldset.input canvas.preview").waitFor();
  await page.close();
});

/** Before the page's scripts: keeps how often storage that stays was asked for; `answer`: what becomes of it. */
const countPersistence = (answer) => `
  window.asked = 0;
  StorageManager.prototype.persisted = async () => false;
  StorageManager.prototype.persist = async () => { window.asked++; ${answer} };`;

test("storage that stays is asked for when a download begins, and not by a visit or for what is kept", async () => {
  const page = await site.open("/", countPersistence("return true"));
  await page.getByText("or drop a .pte").waitFor();
  assert.equal(await page.evaluate(() => window.asked), 0);
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  await page.getByRole("button", { name: "Change model" }).click();
  await page.locator(".cache li").getByRole("button", { name: "Load chat.pte" }).click();
  await page.locator(".model-panel").waitFor({ state: "hidden" });
  assert.equal(await page.evaluate(() => window.asked), 1);
  await page.reload();
  await chat.ready(page);
  assert.equal(await page.evaluate(() => window.asked), 0);
  await page.close();
});

test("a browser that refuses storage that stays, or fails at it, does no harm", async () => {
  const page = await site.open("/", countPersistence('throw new TypeError("no")'));
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  assert.equal(await page.evaluate(() => window.asked), 1);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a link that names a model of this site loads it", async () => {
  const page = await site.open("/?model=chat.pte");
  await chat.ready(page);
  assert.equal(await page.locator(".bar strong").innerText(), "chat.pte");
  await page.close();
});

test("a link that names a model elsewhere says where, and waits; what was loaded once is loaded at once", async () => {
  const link = `/?model=${encodeURIComponent(`${other.origin}/chat.pte`)}`;
  // The conversation of an earlier visit does not push it out of sight.
  const page = await site.open(link, () => localStorage.setItem("pteryx.turns", JSON.stringify([{ role: "user", content: "line\n".repeat(80) }])));
  const card = page.getByRole("region", { name: "Load chat.pte?" });
  await card.waitFor();
  assert.ok(await card.evaluate((element) => new Promise((resolve) => new IntersectionObserver(([entry]) => resolve(entry.isIntersecting)).observe(element))), "it is in sight");
  assert.match(await card.innerText(), new RegExp(new URL(other.origin).host));
  assert.equal(await page.getByLabel("Model URL").inputValue(), `${other.origin}/chat.pte`);
  await screenshot(page, "chat-link");
  assert.deepEqual(other.log, []);
  await card.getByRole("button", { name: "Load this model" }).click();
  await chat.ready(page);
  await page.reload();
  await chat.ready(page);
  await page.close();
  const next = await site.open(link);
  await chat.ready(next);
  assert.ok(other.requests("/chat.pte").reduce((sum, { sent }) => sum + sent, 0) < program.length + 10);
  assert.deepEqual(next.problems, []);
  await next.close();
});

test("a link whose address is no address loads nothing", async () => {
  const page = await site.open("/?model=http%3A%2F%2F");
  await page.getByRole("button", { name: "Load this model" }).click();
  const { code, text } = await failure(page, ".outcome");
  assert.equal(code, "invalid-argument");
  assert.match(text, /'http:\/\/' is not an address/);
  assert.deepEqual(page.problems, []);
  await page.close();
});

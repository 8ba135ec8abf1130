// The chat as a person uses it, with the package and a small model, on the CPU: this browser has no WebGPU. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { chat, drop, failure, fixture, screenshot, startPage } from "./support/page.mjs";

let site;
let model;
before(async () => {
  site = await startPage();
  model = await site.serve("web/chat.pte");
});
after(() => site?.close());
beforeEach(async () => {
  await site.forget();
  model.bytesPerSecond = undefined;
  site.server.clearLog();
  await site.inWorker(null);
});

const kSent = () => site.server.requests("/chat.pte").reduce((sum, request) => sum + request.sent, 0);

/** A page with the model, greedy and short unless told. */
async function talk(settings = {}) {
  const page = await site.open();
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  await chat.settings(page, { Temperature: 0, "Maximum answer length": 24, ...settings });
  return page;
}

test("a first visit says what to do, and fetches neither a model nor WebAssembly", async () => {
  const page = await site.open();
  await page.getByRole("heading", { name: "Chat with a model of your own" }).waitFor();
  assert.ok(await page.getByLabel("Model URL").isEditable());
  assert.equal(await page.getByLabel("Your message").getAttribute("placeholder"), "Load a model first");
  assert.ok(await page.getByRole("button", { name: "Send" }).isDisabled());
  assert.ok(await page.getByText("On this device").isHidden());
  assert.match(await page.locator(".notice").innerText(), /no WebGPU.*CPU/s);
  await chat.ask(page, "Is anybody there?");
  assert.equal(await page.locator(".turn").count(), 0);
  assert.deepEqual(site.server.log.filter(({ path }) => /\.(wasm|pte)$/.test(path)), []);
  await screenshot(page, "chat-first-visit");
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a download shows its progress in bytes, and then what runs where", async () => {
  model.bytesPerSecond = 250_000;
  const page = await site.open();
  await page.evaluate(() => {
    window.seen = [];
    new MutationObserver(() => {
      const bar = document.querySelector(".progress progress");
      if (bar) window.seen.push([bar.value, document.querySelector(".progress .row p").innerText]);
    }).observe(document.querySelector("#panel-chat"), { subtree: true, childList: true, attributes: true, characterData: true });
  });
  await chat.load(page, "chat.pte");
  await page.locator(".progress .bytes", { hasText: /kB of 474 kB/ }).waitFor();
  await screenshot(page, "chat-download");
  await chat.ready(page);
  const seen = await page.evaluate(() => window.seen);
  const values = seen.map(([value]) => value);
  assert.ok(new Set(values).size >= 5, `bar: ${values}`);
  assert.deepEqual([...values].sort((a, b) => a - b), values);
  const bytes = seen.flatMap(([, text]) => /(\d+) kB of 474 kB/.exec(text)?.[1] ?? []).map(Number);
  assert.ok(new Set(bytes).size >= 4, `bytes: ${bytes}`);
  assert.equal(await page.locator(".bar strong").innerText(), "chat.pte");
  assert.match(await page.locator(".device-facts").innerText(), /^CPU · \d+(\.\d)? MB of memory · context 1,024$/);
  await page.locator(".notes summary").click();
  assert.match(await page.locator(".notes").innerText(), /The CPU is used, which is slower than a GPU: WebGPU is there, but it offers no GPU/);
  assert.match(await page.locator("#announcer").innerText(), /chat\.pte is ready/);
  await page.close();
});

test("a download that was cancelled can be started again", async () => {
  model.bytesPerSecond = 100_000;
  const page = await site.open();
  await chat.load(page, "chat.pte");
  await page.locator(".progress .bytes", { hasText: /kB of/ }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  const { code } = await failure(page, ".outcome");
  assert.equal(code, "cancelled");
  assert.ok(kSent() < model.body.length);
  model.bytesPerSecond = undefined;
  await page.getByRole("button", { name: "Try again" }).click();
  await chat.ready(page);
  await page.close();
});

test("an answer comes piece by piece, with its speed", async () => {
  const page = await talk({ "Maximum answer length": 400 });
  await page.evaluate(() => {
    window.texts = [];
    new MutationObserver(() => window.texts.push(document.querySelector(".answer .markdown")?.innerText ?? "")).observe(document.querySelector(".log"), { subtree: true, childList: true, characterData: true });
  });
  await chat.ask(page, "Why is the sky blue?");
  const answer = await chat.answer(page);
  const texts = await page.evaluate(() => [...new Set(window.texts.filter(Boolean))]);
  assert.ok(texts.length >= 3, `the answer came in ${texts.length} parts`);
  for (const text of texts) assert.ok(answer.startsWith(text.trimEnd().slice(0, -3)), "what was shown is the beginning of the answer");
  assert.match(await page.locator(".facts").innerText(), /^\d+(\.\d)? tokens\/s · first token \d+(\.\d)? m?s · 400 tokens$/);
  assert.equal(await page.locator(".note").innerText(), "Stopped at the maximum answer length (see Settings).");
  assert.equal(await page.locator(".question .bubble").innerText(), "Why is the sky blue?");
  await screenshot(page, "chat-answer");
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("Escape and the button stop an answer, which stays", async () => {
  const page = await talk({ "Maximum answer length": 900 });
  for (const how of ["Escape", "button"]) {
    // As soon as something is there: this model writes a thousand tokens a second.
    await page.evaluate((way) => new MutationObserver((_, observer) => {
      const answer = [...document.querySelectorAll(".answer.writing .markdown")].at(-1);
      if (!answer?.innerText) return;
      observer.disconnect();
      if (way === "Escape") document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
      else document.querySelector('.composer button[aria-label="Stop"]').click();
    }).observe(document.querySelector(".log"), { subtree: true, childList: true, characterData: true }), how);
    await chat.ask(page, "Tell me more");
    const answer = await chat.answer(page);
    assert.ok(answer.length > 0);
    assert.equal(await page.locator(".note").last().innerText(), "Stopped.", how);
    const tokens = Number(/(\d+) tokens?$/.exec(await page.locator(".facts").last().innerText())[1]);
    assert.ok(tokens > 0 && tokens < 800, `${tokens} tokens`);
  }
  await chat.ask(page, "Again");
  await chat.answer(page);
  assert.equal(await page.locator(".turn").count(), 6);
  await page.close();
});

/** In the worker: an answer to a question with "slowly" in it stays at its first words until the page says "go". */
const answerSlowly = () => {
  const slow = new Set();
  const held = [];
  let pieces = 0;
  const post = self.postMessage.bind(self);
  addEventListener("message", ({ data }) => data.name === "generate" && data.args[0].prompt.messages.at(-1).content.includes("slowly") && slow.add(data.id));
  self.postMessage = (message) => {
    if (slow.has(message.id) && pieces++ >= 20) held.push(message);
    else post(message);
  };
  new BroadcastChannel("answers").onmessage = () => {
    slow.clear();
    for (const message of held.splice(0)) post(message);
  };
};
const goOn = async (page) => {
  await page.evaluate(() => new BroadcastChannel("answers").postMessage("go"));
  // What was held arrives.
  await page.waitForTimeout(200);
};
/** A page on which an answer has only begun. */
async function answering() {
  await site.inWorker(answerSlowly);
  const page = await talk();
  await chat.ask(page, "Speak slowly");
  await page.waitForFunction(() => document.querySelector(".answer.writing .markdown")?.innerText.length > 5);
  return page;
}
const kept = (page) => page.evaluate(() => JSON.parse(localStorage.getItem("pteryx.turns"))?.map((turn) => turn?.role));

test("a new chat in the middle of an answer has nothing of it", async () => {
  const page = await answering();
  await page.getByRole("button", { name: "New chat" }).click();
  assert.equal(await page.locator(".turn").count(), 0);
  await chat.ask(page, "Hello there");
  const answer = await chat.answer(page, 10_000);
  await goOn(page);
  assert.deepEqual(await page.locator(".question .bubble").allInnerTexts(), ["Hello there"]);
  assert.equal(await page.locator(".answer .markdown").innerText(), answer);
  assert.deepEqual(await kept(page), ["user", "assistant"]);
  await page.getByRole("button", { name: "New chat" }).click();
  await chat.ask(page, "Hello there");
  assert.equal(await chat.answer(page), answer, "it was asked as the first question");
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("another model in the middle of an answer: what was written stays", async () => {
  const page = await answering();
  const begun = await page.locator(".answer .markdown").innerText();
  await page.getByRole("button", { name: "Change model" }).click();
  await page.locator(".cache li").getByRole("button", { name: "Load chat.pte" }).click();
  await page.locator(".model-panel").waitFor({ state: "hidden" });
  assert.equal(await page.locator(".answer .markdown").innerText(), begun);
  assert.ok(await page.getByRole("button", { name: "Regenerate" }).isVisible());
  assert.ok(await page.getByRole("button", { name: "Send" }).isVisible());
  await goOn(page);
  await chat.ask(page, "Hello there");
  await chat.answer(page);
  assert.deepEqual(await kept(page), ["user", "assistant", "user", "assistant"]);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("greedy answers repeat, seeds repeat, regenerating draws anew", async () => {
  const page = await talk();
  const again = async () => {
    await page.getByRole("button", { name: "Regenerate" }).click();
    return chat.answer(page);
  };
  await chat.ask(page, "Hello there");
  const greedy = await chat.answer(page);
  assert.equal(await again(), greedy);
  await chat.settings(page, { Temperature: 1.5, Seed: 7 });
  const seven = await again();
  assert.notEqual(seven, greedy);
  assert.equal(await again(), seven);
  await chat.settings(page, { Seed: 8 });
  assert.notEqual(await again(), seven);
  await chat.settings(page, { Seed: "" });
  assert.notEqual(await again(), await again());
  assert.equal(await page.locator(".turn").count(), 2);
  await page.close();
});

test("the system prompt and the longest answer take effect, also after a reload", async () => {
  const page = await talk();
  await chat.ask(page, "Hello there");
  const without = await chat.answer(page);
  await chat.settings(page, { "System prompt": "You are a pirate.", "Maximum answer length": 9 });
  await page.getByRole("button", { name: "Regenerate" }).click();
  const pirate = await chat.answer(page);
  assert.notEqual(without.slice(0, pirate.length), pirate);
  assert.match(await page.locator(".facts").innerText(), / 9 tokens$/);
  await page.reload();
  await chat.ready(page);
  await page.getByRole("button", { name: "Regenerate" }).click();
  assert.equal(await chat.answer(page), pirate);
  await page.close();
});

test("an edited question replaces what followed it", async () => {
  const page = await talk();
  await chat.ask(page, "First");
  const first = await chat.answer(page);
  await chat.ask(page, "Second");
  await chat.answer(page);
  await page.locator(".question").first().hover();
  await page.locator(".question").first().getByRole("button", { name: "Edit" }).click();
  assert.equal(await page.getByLabel("Your message").inputValue(), "First");
  await chat.ask(page, "Third");
  assert.notEqual(await chat.answer(page), first);
  assert.deepEqual(await page.locator(".question .bubble").allInnerTexts(), ["Third"]);
  await page.getByRole("button", { name: "New chat" }).click();
  assert.equal(await page.locator(".turn").count(), 0);
  await page.close();
});

test("after a reload the model comes from the cache and the conversation goes on", async () => {
  const page = await talk();
  await chat.ask(page, "Hello there");
  const first = await chat.answer(page);
  site.server.clearLog();
  await page.reload();
  await chat.ready(page);
  assert.equal(await page.locator(".answer .markdown").innerText(), first);
  await chat.ask(page, "And then?");
  await chat.answer(page);
  assert.equal(await page.locator(".turn").count(), 4);
  assert.ok(kSent() <= 1, `${kSent()} bytes of the model were sent again`);
  // The server that has the model is gone: what is kept is used, and the page says so.
  model.status = 503;
  await page.reload();
  await chat.ready(page);
  delete model.status;
  await page.locator(".notes summary").click();
  assert.match(await page.locator(".notes").innerText(), /The copy in the cache is used.*503/);
  await page.getByRole("button", { name: "Regenerate" }).click();
  assert.ok((await chat.answer(page)).length > 0);
  await page.close();
});

test("the cache is listed with sizes, and what is in it can be loaded and deleted", async () => {
  const page = await talk();
  await page.getByRole("button", { name: "Change model" }).click();
  const row = page.locator(".cache li");
  await row.waitFor();
  assert.match(await row.innerText(), /chat\.pte\s+474 kB · just now/);
  await screenshot(page, "chat-cache");
  site.server.clearLog();
  await row.getByRole("button", { name: "Load chat.pte" }).click();
  await page.locator(".model-panel").waitFor({ state: "hidden" });
  assert.ok(kSent() <= 1);
  await page.getByRole("button", { name: "Change model" }).click();
  await row.getByRole("button", { name: "Delete chat.pte" }).click();
  await row.waitFor({ state: "detached" });
  assert.match(await page.locator("#announcer").innerText(), /chat\.pte deleted/);
  await page.close();
});

test("a dropped file is a model, too", async () => {
  const page = await site.open();
  await drop(page, [{ name: "mine.pte", body: await fixture("web/chat.pte") }]);
  await chat.ready(page);
  assert.equal(await page.locator(".bar strong").innerText(), "mine.pte");
  await chat.ask(page, "Hello");
  assert.ok((await chat.answer(page)).length > 0);
  assert.equal(kSent(), 0);
  await page.close();
});

test("an empty conversation offers questions, and a page that is put up can suggest models", async () => {
  const suggested = [{ name: "Small talk", url: "chat.pte", bytes: model.body.length, about: "says nothing, quickly" }, { name: "no address" }, 7];
  site.server.file("/models.json", { body: Buffer.from(JSON.stringify(suggested)), type: "application/json" });
  const page = await site.open();
  const row = page.getByRole("region", { name: "Suggested models" }).getByRole("listitem");
  await row.waitFor();
  assert.match(await row.innerText(), /Small talk\s+474 kB · says nothing, quickly/);
  await screenshot(page, "chat-suggestions");
  await row.getByRole("button", { name: "Load Small talk" }).click();
  await chat.ready(page);
  site.server.remove("/models.json");
  await screenshot(page, "chat-starters");
  await page.getByRole("button", { name: "Why is the sky blue?" }).click();
  assert.ok((await chat.answer(page)).length > 0);
  assert.equal(await page.locator(".question .bubble").innerText(), "Why is the sky blue?");
  assert.ok(await page.getByText("start with one of these").isHidden());
  await page.close();
});

test("the word on WebGPU can be dismissed until the next visit", async () => {
  const page = await site.open();
  await page.getByRole("button", { name: "Dismiss" }).click();
  await page.locator(".notice").waitFor({ state: "detached" });
  await page.reload();
  await page.getByText("or drop a .pte").waitFor();
  await page.waitForFunction(() => document.getElementById("device").textContent === "CPU");
  assert.equal(await page.locator(".notice").count(), 0);
  await page.close();
  const later = await site.open();
  await later.locator(".notice").waitFor();
  await later.close();
});

test("a tab that is closed in the middle of a download: the next visit shows how far it came and goes on from there", async () => {
  // Bytes behind a program's own are no part of it; the cache keeps blocks of 4 MiB.
  const body = Buffer.concat([model.body, Buffer.alloc(8 << 20)]);
  const large = site.server.file("/large.pte", { body, bytesPerSecond: 6_000_000 });
  const first = await site.open();
  await chat.load(first, "large.pte");
  const block = 4 << 20;
  // What was sent is not kept at once.
  const isKept = () => first.evaluate(async (bytes) => {
    const kept = await (await navigator.storage.getDirectory()).getDirectoryHandle("pteryx", { create: true });
    for await (const folder of kept.values()) {
      const file = await folder.getFileHandle("b0").then((handle) => handle.getFile()).catch(() => undefined);
      if (file?.size > bytes) return true;
    }
    return false;
  }, block);
  while (!(await isKept())) await first.waitForTimeout(10);
  await first.close();
  large.bytesPerSecond = 3_000_000;
  site.server.clearLog();
  const page = await site.open();
  const row = page.locator(".cache li", { hasText: "large.pte" });
  await row.waitFor();
  assert.match(await row.innerText(), /4\.2 MB of 8\.9 MB/);
  await row.getByRole("button", { name: "Continue large.pte" }).click();
  await chat.ready(page);
  await chat.ask(page, "Hello");
  assert.ok((await chat.answer(page)).length > 0);
  const requests = site.server.requests("/large.pte");
  assert.ok(requests.some(({ range }) => range === `bytes=${block}-`), requests.map(({ range }) => range).join());
  // The rest comes in the background.
  while (site.server.requests("/large.pte").reduce((sum, request) => sum + request.sent, 0) < body.length - block) await page.waitForTimeout(10);
  await page.getByRole("button", { name: "Change model" }).click();
  await row.filter({ hasText: "8.9 MB · just now" }).waitFor();
  await page.close();
});

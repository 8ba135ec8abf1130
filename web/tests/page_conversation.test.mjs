// Conversations in the page: whose they are, and how long they may be; on the CPU. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chat, failure, screenshot, startPage } from "./support/page.mjs";

let site;
before(async () => {
  site = await startPage();
  await site.serve("web/chat.pte");
});
after(() => site?.close());

/** A page that is ready to chat. */
async function talk(settings) {
  const page = await site.open();
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  await chat.settings(page, { Temperature: 0, ...settings });
  return page;
}

test("two tabs have a conversation each, which a reload keeps, and a new tab goes on with the last one", async () => {
  const said = (page) => page.locator(".question .bubble").allInnerTexts();
  const first = await talk({ "Maximum answer length": 4 });
  await chat.ask(first, "First tab");
  await chat.answer(first);
  const second = await site.open();
  assert.deepEqual(await said(second), ["First tab"]);
  await chat.load(second, "chat.pte");
  await chat.ready(second);
  await second.getByRole("button", { name: "New chat" }).click();
  await first.reload();
  await chat.ready(first);
  assert.deepEqual(await said(first), ["First tab"]);
  await chat.ask(second, "Second tab");
  await chat.answer(second);
  await first.reload();
  await chat.ready(first);
  assert.deepEqual(await said(first), ["First tab"]);
  const third = await site.open();
  await third.locator(".question").waitFor();
  assert.deepEqual(await said(third), ["Second tab"]);
  // An empty conversation stays empty, too.
  await first.getByRole("button", { name: "New chat" }).click();
  await first.reload();
  await chat.ready(first);
  assert.deepEqual(await said(first), []);
  for (const page of [first, second, third]) await page.close();
});

test("a conversation that outgrows the context says so and offers a new one", async () => {
  const page = await talk({ "Maximum answer length": 900 });
  await chat.ask(page, "Tell me everything");
  await chat.answer(page);
  await chat.ask(page, "And more ".repeat(60));
  const { code, text } = await failure(page, ".answer");
  assert.equal(code, "invalid-argument");
  assert.match(text, /1024/);
  await screenshot(page, "chat-context-full");
  await page.locator(".answer").last().getByRole("button", { name: "New chat" }).click();
  await chat.ask(page, "Hello");
  assert.ok((await chat.answer(page)).length > 0);
  assert.equal(await page.locator(".turn").count(), 2);
  await page.close();
});

// The page on Chromium's software GPU: a chat, a GPU that is lost, that is full, and that lacks something. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { chat, failure, fixture, screenshot, startPage } from "./support/page.mjs";

let site;
let program;
before(async () => {
  site = await startPage({ webgpu: true });
  program = await fixture("web/chat.pte");
});
after(() => site?.close());
beforeEach(async () => {
  await site.forget();
  site.server.file("/chat.pte", { body: program });
  await site.inWorker(null);
});

test("a chat on the GPU outlives the GPU's crash, in the middle of an answer", async () => {
  const page = await site.open();
  await chat.load(page, "chat.pte", "gpu");
  await chat.ready(page, 60_000);
  assert.match(await page.locator(".device-facts").innerText(), /^google swiftshader · \d+ kB of GPU memory · context 1,024$/);
  await chat.settings(page, { Temperature: 0, "Maximum answer length": 12 });
  await chat.ask(page, "Hello there");
  const first = await chat.answer(page, 60_000);
  assert.match(await page.locator(".facts").innerText(), /12 tokens$/);

  await chat.settings(page, { "Maximum answer length": 900 });
  const written = () => page.waitForFunction(() => [...document.querySelectorAll(".answer.writing .markdown")].at(-1)?.innerText.length > 20, null, { timeout: 30_000 });
  await chat.ask(page, "Tell me more");
  await written();
  await page.keyboard.press("Escape");
  const stopped = await chat.answer(page);
  assert.equal(await page.locator(".note").last().innerText(), "Stopped.");
  await page.getByRole("button", { name: "Regenerate" }).click();
  await written();

  const requests = site.server.requests("/chat.pte").length;
  await site.browser.killGpu();
  const { code, text, card } = await failure(page, ".answer");
  assert.equal(code, "device-lost");
  assert.match(text, /the GPU device is lost/);
  const kept = await page.locator(".answer .markdown").last().innerText();
  assert.ok(kept.length > 20, "what was written stays");
  await screenshot(page, "failure-device-lost");
  await card.getByRole("button", { name: "Restart the GPU" }).click();
  assert.ok(await page.getByRole("button", { name: "Send" }).isDisabled());
  await page.locator(".answer.writing").waitFor({ timeout: 60_000 });
  await written();
  await page.keyboard.press("Escape");
  const again = await chat.answer(page);
  const common = Math.min(again.length, stopped.length) - 5;
  assert.equal(again.slice(0, common), stopped.slice(0, common), "the same question gives the same answer");
  assert.deepEqual(await page.locator(".question .bubble").allInnerTexts(), ["Hello there", "Tell me more"]);
  assert.equal(await page.locator(".answer .markdown").first().innerText(), first);
  assert.match(await page.locator(".device-facts").innerText(), /^google swiftshader/);
  const sent = site.server.requests("/chat.pte").slice(requests).reduce((sum, request) => sum + request.sent, 0);
  assert.ok(sent <= 1, `the model came from the cache, but ${sent} bytes were sent`);
  assert.deepEqual(page.problems, []);
  await page.close();
});

/** In the worker: on "lose" the GPU is gone, and whoever asks for one waits for "back" or is told that there is "none". */
const loseGpu = () => {
  const channel = new BroadcastChannel("gpu");
  const devices = [];
  const { requestAdapter } = GPU.prototype;
  const { requestDevice } = GPUAdapter.prototype;
  let word = "back";
  channel.addEventListener("message", ({ data }) => {
    word = data;
    if (word === "lose") for (const device of devices.splice(0)) device.destroy();
  });
  GPU.prototype.requestAdapter = async function (...options) {
    while (word === "lose") await new Promise((resolve) => channel.addEventListener("message", resolve, { once: true }));
    return word === "none" ? null : requestAdapter.apply(this, options);
  };
  GPUAdapter.prototype.requestDevice = async function (...options) {
    const device = await requestDevice.apply(this, options);
    devices.push(device);
    return device;
  };
};
const tellGpu = (page, ...words) => page.evaluate((list) => {
  const channel = new BroadcastChannel("gpu");
  for (const word of list) channel.postMessage(word);
}, words);

/** A page with a model on a GPU that `tellGpu` can take away. */
async function onGpu() {
  await site.inWorker(loseGpu);
  const page = await site.open();
  await chat.load(page, "chat.pte", "gpu");
  await chat.ready(page);
  await chat.settings(page, { Temperature: 0, "Maximum answer length": 12 });
  return page;
}

test("a GPU that does not come back: the CPU goes on with the conversation", async () => {
  const page = await onGpu();
  await chat.ask(page, "Hello there");
  const first = await chat.answer(page);
  await tellGpu(page, "lose", "none");
  await chat.ask(page, "And then?");
  const lost = await failure(page, ".answer");
  assert.equal(lost.code, "device-lost");
  await lost.card.getByRole("button", { name: "Restart the GPU" }).click();
  for (const again of [true, false]) {
    const { code, card } = await failure(page, ".recovery");
    assert.equal(code, "no-device");
    assert.match(await page.getByLabel("Your message").getAttribute("placeholder"), /GPU is not running/);
    await screenshot(page, "failure-no-restart");
    if (again) await card.getByRole("button", { name: "Try again" }).click();
    else await card.getByRole("button", { name: "Run on the CPU" }).click();
  }
  await page.locator(".device-facts", { hasText: /^CPU/ }).waitFor();
  await page.locator(".turn").nth(3).waitFor();
  assert.ok((await chat.answer(page)).length > 0);
  assert.equal(await page.locator(".recovery").innerText(), "");
  assert.deepEqual(await page.locator(".question .bubble").allInnerTexts(), ["Hello there", "And then?"]);
  assert.equal(await page.locator(".answer .markdown").first().innerText(), first);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a new chat while the GPU restarts: progress stays in sight, and nothing is asked by itself", async () => {
  const page = await onGpu();
  await tellGpu(page, "lose");
  await chat.ask(page, "Hello there");
  const { card } = await failure(page, ".answer");
  await card.getByRole("button", { name: "Restart the GPU" }).click();
  await page.getByRole("button", { name: "New chat" }).click();
  assert.ok(await page.getByRole("region", { name: "Restarting the GPU" }).isVisible());
  assert.equal(await page.locator(".turn, .starters").count(), 0);
  await tellGpu(page, "back");
  await page.locator(".starters").waitFor();
  await chat.ask(page, "Hello again");
  assert.ok((await chat.answer(page)).length > 0);
  assert.deepEqual(await page.locator(".question .bubble").allInnerTexts(), ["Hello again"]);
  assert.deepEqual(page.problems, []);
  await page.close();
});

/** In the worker: the GPU has memory for one, which is whoever holds the lock "GPU memory"; others are told no as the browser would say it. */
const memoryForOne = () => {
  let mine;
  let free;
  const take = () => new Promise((resolve) => {
    void navigator.locks.request("GPU memory", { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock && new Promise((release) => (free = release));
    });
  });
  const { pushErrorScope, popErrorScope, destroy } = GPUDevice.prototype;
  const scopes = new WeakMap();
  GPUDevice.prototype.pushErrorScope = function (kind) {
    scopes.set(this, [...(scopes.get(this) ?? []), kind]);
    return pushErrorScope.call(this, kind);
  };
  GPUDevice.prototype.popErrorScope = async function () {
    const kind = scopes.get(this).pop();
    const error = await popErrorScope.call(this);
    if (kind !== "out-of-memory" || (await (mine ??= take()))) return error;
    return new GPUOutOfMemoryError("Failed to allocate memory for a buffer");
  };
  GPUDevice.prototype.destroy = function () {
    free?.();
    return destroy.call(this);
  };
};

test("a GPU without memory: said as such, and the CPU is offered", async () => {
  await site.inWorker(memoryForOne);
  const page = await site.open();
  await page.evaluate(() => void navigator.locks.request("GPU memory", () => new Promise(() => undefined)));
  await chat.load(page, "chat.pte", "gpu");
  const { code, text, card } = await failure(page, ".outcome", 60_000);
  assert.equal(code, "out-of-memory");
  assert.match(text, /no memory is left on the GPU/);
  assert.equal(await card.getByRole("button", { name: /^Unload/ }).count(), 0, "no model is in use");
  await screenshot(page, "failure-out-of-memory");
  await card.getByRole("button", { name: "Run on the CPU" }).click();
  await chat.ready(page);
  assert.match(await page.locator(".device-facts").innerText(), /^CPU/);
  await page.close();
});

test("a GPU with memory for one model: the model in use makes room for another, which continues the conversation", async () => {
  site.server.file("/other.pte", { body: program });
  await site.inWorker(memoryForOne);
  const page = await site.open();
  await chat.load(page, "chat.pte", "gpu");
  await chat.ready(page);
  await chat.settings(page, { Temperature: 0, "Maximum answer length": 12 });
  await chat.ask(page, "Hello there");
  const first = await chat.answer(page);
  await page.getByRole("button", { name: "Change model" }).click();
  await chat.load(page, "other.pte");
  const { code, card } = await failure(page, ".outcome");
  assert.equal(code, "out-of-memory");
  await screenshot(page, "failure-out-of-memory-in-use");
  // Until it is asked to go, the model in use answers.
  await chat.ask(page, "Are you still there?");
  await chat.answer(page);
  await card.getByRole("button", { name: "Unload chat.pte and try again" }).click();
  await page.locator(".bar strong", { hasText: "other.pte" }).waitFor();
  assert.match(await page.locator(".device-facts").innerText(), /^google swiftshader/);
  assert.equal(await page.locator(".answer .markdown").first().innerText(), first);
  await chat.ask(page, "And you?");
  assert.ok((await chat.answer(page)).length > 0);
  assert.equal(await page.locator(".turn").count(), 6);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("operators and limits that this GPU lacks: all at once, before the weights are fetched", async () => {
  await site.inWorker(() => {
    const kSmall = 16384;
    for (const name of ["maxStorageBufferBindingSize", "maxBufferSize"]) Object.defineProperty(GPUSupportedLimits.prototype, name, { get: () => kSmall });
  });
  const renamed = Buffer.from(program);
  for (const [from, to] of [["et_vk.rms_norm", "et_vk.zzz_norm"], ["aten.sigmoid", "aten.zzzmoid"]]) renamed.write(to, renamed.indexOf(from), "latin1");
  for (const [name, body, expected, verdict] of [
    ["limits.pte", program, ["unsupported", /(max_buffer_bytes of the device is 16384[^]*){10}/], 10],
    ["operators.pte", renamed, ["unsupported", /zzz_norm/, /zzzmoid/], 2],
  ]) {
    site.server.file(`/${name}`, { body, bytesPerSecond: 75_000 });
    const page = await site.open();
    await chat.load(page, name, "gpu");
    const { code, text, card } = await failure(page, ".outcome");
    assert.equal(code, expected[0], text);
    for (const pattern of expected.slice(1)) assert.match(text, pattern);
    const sent = site.server.requests(`/${name}`).reduce((sum, request) => sum + request.sent, 0);
    assert.ok(sent < body.length * 0.8, `${sent} of ${body.length} bytes were sent`);
    await screenshot(page, `failure-gpu-${name.replace(".pte", "")}`);
    // Inspect has room for all of them.
    await card.getByRole("button", { name: "Inspect the file" }).click();
    const list = page.locator('#panel-inspect [data-verdict="no"] li');
    await list.first().waitFor();
    assert.ok((await list.count()) >= verdict, await list.allInnerTexts().then(String));
    await screenshot(page, `inspect-gpu-${name.replace(".pte", "")}`);
    await page.close();
  }
});

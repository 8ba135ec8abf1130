// A GPU that is lost, through the package: what fails, and what recover() brings back. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launchBrowser } from "./support/browser.mjs";
import { startServer } from "./support/server.mjs";

let server;
let browser;
let page;
before(async () => {
  server = await startServer({ root: fileURLToPath(new URL("../../", import.meta.url)) });
  browser = await launchBrowser({ webgpu: true });
  page = await browser.open(`${server.origin}/web/tests/support/blank.html`);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

test("every call fails with device-lost until recover(), after which all sequences go on", async () => {
  const outcome = await page.evaluate(async () => {
    const { loadModel } = await import("/web/dist/index.js");
    const codeOf = (promise) => promise.then(() => "none", (error) => error.code);
    const model = await loadModel("/tests/fixtures/web/chat.pte", { device: "gpu" });
    const second = await model.createSequence();
    const options = { maxTokens: 6 };
    const texts = async () => [(await model.chat([{ role: "user", content: "Hello" }], options).result).text, (await second.generate("Once upon", options).result).text];
    const before = await texts();
    // What a driver's reset does.
    await model.connection.call("loseDevice", []);
    const lost = [await codeOf(model.generate("Hello", options).result), await codeOf(second.generate("Hello", options).result)];
    // A recovery that is cancelled leaves nothing behind that the next one trips over.
    const cancelled = await codeOf(model.recover({ signal: AbortSignal.abort() }));
    const fractions = [];
    await model.recover({ onProgress: ({ fraction }) => fractions.push(fraction) });
    const after = await texts();
    const { kind, memoryBytes } = await model.device();
    await model.dispose();
    return { before, lost, cancelled, last: fractions.at(-1), after, kind, memoryBytes, disposed: await codeOf(model.recover()) };
  });
  assert.deepEqual(outcome.lost, ["device-lost", "device-lost"]);
  assert.equal(outcome.cancelled, "cancelled");
  assert.equal(outcome.last, 1);
  assert.deepEqual(outcome.after, outcome.before);
  assert.equal(outcome.kind, "gpu");
  assert.ok(outcome.memoryBytes > 100_000);
  assert.equal(outcome.disposed, "invalid-argument");
});

// A run that takes its time: it can be stopped, and another program may take its place. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { drop, fixture, screenshot, startPage } from "./support/page.mjs";

/** In the worker: a run begins when it is cancelled, or when the page says "go". */
const runSlowly = () => {
  const held = new Map();
  const go = (id) => {
    const data = held.get(id);
    held.delete(id);
    if (data) dispatchEvent(new MessageEvent("message", { data }));
  };
  addEventListener("message", (event) => {
    const { data } = event;
    if (data.name === "run" && event.isTrusted) {
      held.set(data.id, data);
      event.stopImmediatePropagation();
    }
    if ("cancel" in data) go(data.cancel);
  });
  new BroadcastChannel("runs").onmessage = () => [...held.keys()].forEach(go);
};

let site;
before(async () => {
  site = await startPage();
  await site.inWorker(runSlowly);
});
after(() => site?.close());

const goOn = (page) => page.evaluate(() => new BroadcastChannel("runs").postMessage("go"));
/** A page with a run under way. */
async function running() {
  const page = await site.open("/#run");
  await page.locator("#panel-run h2").waitFor();
  await drop(page, [{ name: "net_cnn.pte", body: await fixture("ops/net_cnn.pte") }]);
  await page.locator("#input-0").selectOption("zeros");
  await page.getByRole("button", { name: "Run forward" }).click();
  return page;
}

test("a run can be stopped, and run again", async () => {
  const page = await running();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  assert.ok(await page.getByRole("button", { name: "Run forward" }).isDisabled());
  await screenshot(page, "run-running");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".results", { hasText: "Stopped." }).waitFor();
  assert.equal(await page.locator(".card.error").count(), 0);
  assert.ok(await page.getByRole("button", { name: "Stop" }).isHidden());
  await page.getByRole("button", { name: "Run forward" }).click();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await goOn(page);
  await page.locator(".card.output").waitFor();
  assert.doesNotMatch(await page.locator(".results").innerText(), /Stopped/);
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a program that takes the place of another in the middle of a run shows nothing of it", async () => {
  const page = await running();
  await drop(page, [{ name: "upsample_nearest.pte", body: await fixture("ops/upsample_nearest.pte") }]);
  await page.locator("#panel-run .bar strong", { hasText: "upsample_nearest.pte" }).waitFor();
  await goOn(page);
  await page.waitForTimeout(200);
  assert.equal(await page.locator(".results").innerText(), "");
  assert.ok(await page.getByRole("button", { name: "Stop" }).isHidden());
  await page.locator("#input-0").selectOption("ones");
  await page.getByRole("button", { name: "Run forward" }).click();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await goOn(page);
  await page.locator(".card.output").waitFor();
  assert.match(await page.locator(".card.output").innerText(), /f32 \[1, 3, 10, 14\]/);
  assert.deepEqual(page.problems, []);
  await page.close();
});

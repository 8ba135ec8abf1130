// A run that takes its time: it can be stopped, and another program may take its place. And an input that is not right yet. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { drop, failure, fixture, screenshot, startPage } from "./support/page.mjs";
import { png } from "./support/pictures.mjs";

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
});
after(() => site?.close());
beforeEach(() => site.inWorker(runSlowly));

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

/** In the worker: a run cannot be interrupted, and ends when the page says "go"; what comes after it waits. */
const runToTheEnd = () => {
  const held = [];
  let runs = false;
  addEventListener("message", (event) => {
    runs ||= event.data.name === "run";
    if (!runs || !event.isTrusted) return;
    held.push(event.data);
    event.stopImmediatePropagation();
  });
  new BroadcastChannel("runs").onmessage = () => {
    runs = false;
    for (const data of held.splice(0)) dispatchEvent(new MessageEvent("message", { data }));
  };
};

test("another program while a run cannot be interrupted: it says what it waits for, and can be cancelled", async () => {
  await site.inWorker(runToTheEnd);
  const page = await running();
  const other = { name: "upsample_nearest.pte", body: await fixture("ops/upsample_nearest.pte") };
  await drop(page, [other]);
  const progress = page.getByRole("region", { name: other.name });
  await progress.getByText("Unloading the previous program").waitFor();
  await screenshot(page, "run-unloading");
  await page.locator("#panel-run").getByRole("button", { name: "Cancel" }).click();
  const { code, card } = await failure(page, "#panel-run", 5000);
  assert.equal(code, "cancelled");
  await card.getByRole("button", { name: "Try again" }).click();
  await progress.getByText("Unloading the previous program").waitFor();
  await goOn(page);
  await page.locator("#panel-run .bar strong", { hasText: other.name }).waitFor();
  assert.equal(await page.locator(".results").innerText(), "");
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("a picture where the Shape cannot be read: what is wrong with it, until it is put right", async () => {
  const page = await site.open("/#run");
  await page.locator("#panel-run h2").waitFor();
  await drop(page, [{ name: "mixed_dyn_matmul.pte", body: await fixture("ops/mixed_dyn_matmul.pte") }]);
  const shape = page.getByLabel("Shape");
  await shape.fill("1, 3, sixty, 8");
  const picture = { name: "picture.png", body: png(8, 64, (x, y) => [x * 30, y * 3, 99]), type: "image/png" };
  const problem = page.locator("fieldset.input .problem");
  await drop(page, [picture]);
  await problem.waitFor();
  assert.equal(await problem.innerText(), "Shape must be 4 whole numbers of at most [1, 3, 64, 8]");
  assert.equal(await page.locator(".card.error").count(), 0);
  await screenshot(page, "run-wrong-shape");
  await shape.fill("1, 3, 2, 8");
  await shape.blur();
  assert.equal(await problem.innerText(), "[1, 3, 2, 8] is not the shape of a picture");
  await shape.fill("1, 3, 32, 8");
  await shape.blur();
  await problem.waitFor({ state: "detached" });
  assert.ok(await page.locator("fieldset.input canvas.preview").isVisible());
  await page.close();
});

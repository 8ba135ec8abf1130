// Committed programs through the package in a page of headless Chromium. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launchBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

const root = new URL("../../../", import.meta.url);

/** A test for each pair of a device and a folder of tests/fixtures: all of its programs, within the tolerances of native tests. */
export function testPrograms(pairs) {
  let server;
  let browser;
  let page;
  before(async () => {
    server = await startServer({ root: fileURLToPath(root) });
    browser = await launchBrowser({ webgpu: true });
    page = await browser.open(`${server.origin}/web/tests/support/blank.html`);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });
  for (const [device, folder] of pairs) {
    test(`programs in ${folder} on the ${device}`, async () => {
      const manifest = JSON.parse(await readFile(new URL(`tests/fixtures/${folder}/manifest.json`, root), "utf8"));
      const outcomes = await page.evaluate(async ([at, options]) => {
        const pteryx = await import("/web/dist/index.js");
        const { verifyManifest } = await import("/web/tests/support/verify.mjs");
        const cases = await (await fetch(`${at}manifest.json`)).json();
        const bytes = async (name) => new Uint8Array(await (await fetch(at + name)).arrayBuffer());
        return verifyManifest(pteryx, cases, bytes, (name) => at + name, { ...options, cache: false });
      }, [`/tests/fixtures/${folder}/`, { device }]);
      assert.deepEqual(outcomes.filter(([, problem]) => problem !== ""), []);
      assert.equal(outcomes.length, manifest.cases.length);
    });
  }
}

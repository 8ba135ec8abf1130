// Calls that are stopped or fail, in Chromium, through the worker and without one. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { launchBrowser } from "./support/browser.mjs";
import { makeGguf } from "./support/gguf.mjs";
import { startServer } from "./support/server.mjs";

const headers = {
  "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp", "Cross-Origin-Resource-Policy": "same-origin",
};
let server;
let browser;
before(async () => {
  server = await startServer({ root: fileURLToPath(new URL("../../", import.meta.url)), headers });
  server.file("/small.gguf", { body: makeGguf() });
  browser = await launchBrowser({ webgpu: true });
});
after(async () => {
  await browser?.close();
  await server?.close();
});
const openPage = () => browser.open(`${server.origin}/web/tests/support/blank.html`);

const kChat = "/tests/fixtures/web/chat.pte";
const kAdd = "/tests/fixtures/ops/add.pte"; // little to compile
for (const [part, input, options] of [
  ["pteryx.wasm", kAdd, { device: "gpu" }],
  ["kernels.bin", kAdd, { device: "gpu" }],
  ["pteryx_cpu.wasm", kChat, { device: "cpu", threads: 1 }],
  ["pteryx_convert.wasm", "/small.gguf", { device: "cpu" }],
  ["thread.js", kAdd, { device: "cpu", threads: 2 }],
  ["worker.js", kAdd, { device: "cpu" }],
]) for (const worker of part === "worker.js" ? [true] : [true, false]) {
  test(`${part} does not come: a load ${worker ? "in a worker" : "on the page's thread"} is cancelled at once, and the next one works`, async () => {
    const page = await openPage();
    try {
      const path = `/web/dist/${part}`;
      server.file(path, { silent: true });
      server.clearLog();
      const loading = page.evaluate(async ([from, options]) => {
        const { loadModel, loadProgram } = await import("/web/dist/index.js");
        const load = from.endsWith(".gguf") ? loadModel : loadProgram;
        const controller = new AbortController();
        globalThis.abort = () => {
          controller.abort();
          setTimeout(() => late("nothing happened"), 5000);
        };
        let late;
        const code = load(from, { ...options, cache: false, signal: controller.signal }).then(() => "none", (error) => error.code);
        return Promise.race([code, new Promise((resolve) => (late = resolve))]);
      }, [input, { ...options, worker }]);
      for (let tries = 0; tries < 500 && server.requests(path).length === 0; tries++) await sleep(20);
      assert.equal(server.requests(path).length, 1);
      await page.evaluate(() => globalThis.abort());
      assert.equal(await loading, "cancelled");
      server.remove(path);
      if (part.endsWith(".js")) {
        // Chromium goes on waiting for scripts of workers.
        await server.setOnline(false);
        await server.setOnline(true);
      }
      await page.evaluate(async ([from, options]) => {
        const { loadModel, loadProgram } = await import("/web/dist/index.js");
        const loaded = await (from.endsWith(".gguf") ? loadModel : loadProgram)(from, { ...options, cache: false });
        await loaded.dispose();
      }, [input, { ...options, worker }]);
    } finally {
      server.remove(`/web/dist/${part}`);
      await page.close();
    }
  });
}

for (const worker of [true, false]) {
  const where = worker ? "a worker" : "the page's thread";
  test(`${where}: dispose() stops a text, and what a callback throws rejects its call`, async () => {
    const page = await openPage();
    const outcome = await page.evaluate(async ([path, options]) => {
      const { loadModel } = await import("/web/dist/index.js");
      const thrower = () => {
        throw new Error("boom");
      };
      const what = (promise) => promise.then(() => "nothing", (error) => error.message);
      const load = await what(loadModel(path, { ...options, onProgress: thrower }));
      const model = await loadModel(path, options);
      const text = async () => (await model.generate("Hello", { maxTokens: 4, ignoreEnd: true }).result).text;
      const before = await text();
      const prompt = await what(model.generate("Tell me something long. ".repeat(20), { maxTokens: 4, onPrompt: thrower }).result);
      const after = await text();
      const recovery = await what(model.recover({ onProgress: thrower }));
      await model.recover();
      const recovered = await text();
      const running = model.generate("Hello", { ignoreEnd: true, shift: true });
      for await (const _ of running) {
        await model.dispose();
        break;
      }
      return { load, prompt, recovery, same: before === after && before === recovered, reason: (await running.result).reason };
    }, [kChat, { device: "cpu", cache: false, worker }]);
    await page.close();
    assert.deepEqual(outcome, { load: "boom", prompt: "boom", recovery: "boom", same: true, reason: "cancelled" });
  });

  test(`${where}: a load that fails for want of a module leaves its cached file to others`, async () => {
    const page = await openPage();
    server.file("/web/dist/pteryx_cpu.wasm", { status: 404 });
    const { code, held } = await page.evaluate(async ([path, options]) => {
      const { loadModel, inspectProgram } = await import("/web/dist/index.js");
      const codeOf = (promise) => promise.then(() => "none", (error) => error.code);
      const code = [await codeOf(loadModel(path, options)), await codeOf(inspectProgram(path, options))];
      await new Promise((resolve) => setTimeout(resolve, 200));
      return { code, held: (await navigator.locks.query()).held.map(({ name }) => name) };
    }, [kChat, { device: "cpu", threads: 1, worker }]);
    server.remove("/web/dist/pteryx_cpu.wasm");
    await page.close();
    assert.deepEqual(code, ["wasm", "wasm"]);
    assert.deepEqual(held, []);
  });

  test(`${where}: when a download begins that is kept, the browser is asked to keep it, once`, async () => {
    const page = await openPage();
    const asked = await page.evaluate(async (options) => {
      const { cache, loadProgram } = await import("/web/dist/index.js");
      await cache.clear();
      let asked = 0;
      navigator.storage.persisted = async () => false;
      navigator.storage.persist = async () => {
        asked++;
        throw new Error("the browser does not want to");
      };
      const load = async (name, more) => (await loadProgram(`/tests/fixtures/ops/${name}.pte`, { ...options, ...more })).dispose();
      await load("add", { cache: false });
      const counts = [asked];
      for (const name of ["add", "add", "conv1d"]) {
        await load(name);
        counts.push(asked);
      }
      return counts;
    }, { device: "cpu", worker });
    await page.close();
    assert.deepEqual(asked, [0, 1, 1, 1]);
  });
}

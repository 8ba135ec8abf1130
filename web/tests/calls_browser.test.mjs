// Calls that are stopped or fail, in Chromium, through the worker and without one. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
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
  const program = await readFile(new URL("../../tests/fixtures/ops/add.pte", import.meta.url));
  server.file("/padded.pte", { body: Buffer.concat([program, Buffer.alloc(40 << 20)]), bytesPerSecond: 20e6 });
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

test("dispose() ends a worker that does not answer", { timeout: 60_000 }, async () => {
  const page = await openPage();
  const script = await readFile(new URL("../dist/worker.js", import.meta.url));
  const deaf = `addEventListener("message", (event) => event.data.name === "dispose" && event.stopImmediatePropagation());`;
  server.file("/web/dist/worker.js", { body: Buffer.concat([Buffer.from(deaf), script]), type: "text/javascript" });
  await page.evaluate(async ([path, options]) => {
    const { loadProgram } = await import("/web/dist/index.js");
    await (await loadProgram(path, options)).dispose();
  }, [kAdd, { device: "cpu", threads: 1 }]);
  server.remove("/web/dist/worker.js");
  for (let tries = 0; tries < 100 && page.workers().length > 0; tries++) await sleep(50);
  assert.equal(page.workers().length, 0);
  await page.close();
});

test("outputs that cannot be sent to the page are an error, and the program stays usable", { timeout: 60_000 }, async () => {
  const page = await openPage();
  const script = await readFile(new URL("../dist/worker.js", import.meta.url));
  const full = `let left = 1; const post = postMessage.bind(self);
    self.postMessage = (message, ...more) => {
      if (message.value?.output0 && left-- > 0) throw new DOMException("Data cannot be cloned, out of memory.", "DataCloneError");
      post(message, ...more);
    };`;
  server.file("/web/dist/worker.js", { body: Buffer.concat([Buffer.from(full), script]), type: "text/javascript" });
  const outcome = await page.evaluate(async ([path, options]) => {
    const { loadProgram } = await import("/web/dist/index.js");
    const program = await loadProgram(path, options);
    const run = () => program.run("forward", [new Float32Array(231).fill(1), new Float32Array(231).fill(2)]);
    const failure = await run().then(() => "none", ({ code, message }) => `${code}: ${message}`);
    const outputs = await run();
    await program.dispose();
    return { failure, sum: outputs.output0.data[230], same: outputs[0].data === outputs.output0.data };
  }, [kAdd, { device: "cpu", threads: 1 }]);
  server.remove("/web/dist/worker.js");
  assert.deepEqual(outcome, { failure: "out-of-memory: Data cannot be cloned, out of memory.", sum: 3, same: true });
  await page.close();
});

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

  test(`${where}: what was cancelled before it is called does nothing`, async () => {
    const page = await openPage();
    const outcome = await page.evaluate(async ([counter, path, options]) => {
      const { loadModel, loadProgram } = await import("/web/dist/index.js");
      const signal = AbortSignal.abort();
      const codeOf = (promise) => promise.then(() => "none", (error) => error.code);
      const codes = [await codeOf(loadProgram(counter, { ...options, signal }))];
      const program = await loadProgram(counter, options);
      const [{ name, inputs }] = program.info.methods;
      const values = inputs.map(({ dims }) => new Float32Array(dims.reduce((n, d) => n * d, 1)).fill(1));
      const first = await program.run(name, values);
      await program.reset();
      codes.push(await codeOf(program.run(name, values, { signal })));
      const second = await program.run(name, values);
      const model = await loadModel(path, options);
      codes.push(await codeOf(model.recover({ signal })));
      const { reason, newTokens } = await model.generate("Hello", { signal }).result;
      const after = await model.generate("Hello", { maxTokens: 2, ignoreEnd: true }).result;
      await Promise.all([program.dispose(), model.dispose()]);
      return { codes, same: JSON.stringify(first) === JSON.stringify(second), reason, newTokens, after: after.newTokens };
    }, ["/tests/fixtures/state/counter.pte", kChat, { device: "cpu", cache: false, worker }]);
    await page.close();
    assert.deepEqual(outcome, { codes: ["cancelled", "cancelled", "cancelled"], same: true, reason: "cancelled", newTokens: 0, after: 2 });
  });

  test(`${where}: nothing is told of a load that is over`, async () => {
    const page = await openPage();
    const { late, complete } = await page.evaluate(async ([path, options]) => {
      const { cache, loadProgram } = await import("/web/dist/index.js");
      await cache.clear();
      let over = false;
      let late = 0;
      const program = await loadProgram(path, { ...options, onProgress: () => (late += over ? 1 : 0) });
      over = true;
      // Of its download, which goes on.
      for (let tries = 0; tries < 100 && !(await cache.list())[0].complete; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
      const [{ complete }] = await cache.list();
      await program.dispose();
      return { late, complete };
    }, ["/padded.pte", { device: "cpu", threads: 1, worker }]);
    await page.close();
    assert.deepEqual({ late, complete }, { late: 0, complete: true });
  });

  test(`${where}: sequences and models that take turns give the texts that each gives alone`, async () => {
    const page = await openPage();
    const { alone, together, models } = await page.evaluate(async ([path, options]) => {
      const { loadModel } = await import("/web/dist/index.js");
      const limits = { maxTokens: 8, ignoreEnd: true };
      const questions = { a: ["Hello", "What is that?"], b: ["Tell me something long.", "Go on."] };
      const ask = async (sequence, messages, content) => {
        messages.push({ role: "user", content });
        const { text, cachedTokens } = await sequence.chat(messages, limits).result;
        messages.push({ role: "assistant", content: text });
        return { text, cachedTokens };
      };
      const model = await loadModel(path, options);
      const make = async () => ({ a: [await model.createSequence(), []], b: [await model.createSequence(), []] });
      const run = async (order) => {
        const made = await make();
        const asked = { a: 0, b: 0 };
        const answers = { a: [], b: [] };
        for (const name of order) answers[name].push(await ask(...made[name], questions[name][asked[name]++]));
        for (const [sequence] of Object.values(made)) await sequence.dispose();
        return answers;
      };
      const alone = await run("aabb");
      const together = await run("abab");
      // Two at once, and each with two texts at once.
      const both = await Promise.all([loadModel(path, options), loadModel(path, options)]);
      const texts = await Promise.all(both.flatMap((one) => ["a", "b"].map(async (name) => (await one.chat([{ role: "user", content: questions[name][0] }], limits).result).text)));
      for (const one of [model, ...both]) await one.dispose();
      return { alone, together, models: texts };
    }, [kChat, { device: "cpu", threads: 1, cache: false, worker }]);
    await page.close();
    assert.deepEqual(together, alone);
    for (const [first, second] of [together.a, together.b]) assert.ok(second.cachedTokens > first.cachedTokens, `${second.cachedTokens} tokens of the second prompt were cached`);
    assert.notEqual(alone.a[0].text, alone.b[0].text);
    const [a, b] = [alone.a[0].text, alone.b[0].text];
    assert.deepEqual(models, [a, b, a, b]);
  });

  test(`${where}: dispose() leaves no worker, no thread and no lock behind`, async () => {
    const page = await openPage();
    const locks = () => page.evaluate(async () => (await navigator.locks.query()).held.map(({ name }) => name));
    const load = page.evaluate(async ([path, options]) => {
      const { loadModel } = await import("/web/dist/index.js");
      globalThis.model = await loadModel(path, options);
      await globalThis.model.generate("Hello", { maxTokens: 2 }).result;
    }, [kChat, { device: "cpu", threads: 3, worker }]);
    await load;
    assert.equal(page.workers().length, worker ? 3 : 2);
    assert.equal((await locks()).length, 1, "of the cached file");
    await page.evaluate(() => globalThis.model.dispose());
    for (let tries = 0; tries < 200 && (page.workers().length > 0 || (await locks()).length > 0); tries++) await sleep(50);
    assert.deepEqual([page.workers().length, await locks()], [0, []]);
    await page.close();
  });

  test(`${where}: a download that goes on for the next visit ends with dispose(), without a word`, async () => {
    const page = await openPage();
    const warnings = [];
    page.on("console", (message) => warnings.push(message.text()));
    const { cached, size } = await page.evaluate(async ([path, options]) => {
      const { cache, loadProgram } = await import("/web/dist/index.js");
      await cache.clear();
      await (await loadProgram(path, options)).dispose();
      await new Promise((resolve) => setTimeout(resolve, 100));
      const [{ presentBytes, size }] = await cache.list();
      return { cached: presentBytes, size };
    }, ["/padded.pte", { device: "cpu", threads: 1, worker }]);
    await page.close();
    assert.ok(cached < size, `${cached} of ${size} bytes were there already`);
    assert.deepEqual(warnings, []);
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

// Which of its modules the package loads: what is needed, and only that. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launchBrowser } from "./support/browser.mjs";
import { startServer } from "./support/server.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const kIsolation = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp", "Cross-Origin-Resource-Policy": "same-origin" };
/** What web/README.md says that a page's policy has to allow. */
const kPolicy = { "Content-Security-Policy": "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'" };
let plain;
let isolated;
let strict;
let cdn;
let browser;
before(async () => {
  const headers = { "Cache-Control": "no-store" }; // every load is seen
  plain = await startServer({ root, headers });
  isolated = await startServer({ root, headers: { ...headers, ...kIsolation } });
  strict = await startServer({ root, headers: { ...headers, ...kIsolation, ...kPolicy } });
  cdn = await startServer({ root, headers: { ...headers, "Access-Control-Allow-Origin": "*" } });
  browser = await launchBrowser({ webgpu: true });
});
after(async () => {
  await browser?.close();
  await plain?.close();
  await isolated?.close();
  await strict?.close();
  await cdn?.close();
});

/** Runs a task in a fresh page; gives its value and the parts of the package that were loaded, in order. `from`: where the package is. */
async function loaded(server, task, argument, { from = server, at = "/web/tests/support/blank.html" } = {}) {
  from.clearLog();
  const page = await browser.open(server.origin + at);
  try {
    const value = await page.evaluate(task, argument);
    const parts = from.log.map(({ path }) => /^\/web\/dist\/(.*\.(?:wasm|bin)|thread\.js)$/.exec(path)?.[1]).filter((name) => name !== undefined);
    return { value, parts };
  } finally {
    await page.close();
  }
}

const add = async ({ from = "", ...options }) => {
  const { loadProgram } = await import(`${from}/web/dist/index.js`);
  const program = await loadProgram("/tests/fixtures/ops/add.pte", { cache: false, ...options });
  const { output0 } = await program.run("forward", [new Float32Array(231).fill(1), new Float32Array(231).fill(2)]);
  const { threads, device } = program.info;
  await program.dispose();
  return { sum: output0.data[230], threads, kind: device.kind, fallback: device.fallback.join(" ") };
};
const chat = async ({ from = "", ...options }) => {
  const { loadModel } = await import(`${from}/web/dist/index.js`);
  const model = await loadModel("/tests/fixtures/web/chat.pte", { cache: false, device: "cpu", ...options });
  const { text } = await model.chat([{ role: "user", content: "Tell me something long." }], { maxTokens: 40, ignoreEnd: true }).result;
  const { threads, device } = model.info;
  await model.dispose();
  return { text, threads, fallback: device.fallback.join(" ") };
};

test("a GPU: its module and its kernels", async () => {
  const { value, parts } = await loaded(plain, add, { device: "gpu" });
  assert.deepEqual([value.sum, value.kind, value.threads], [3, "gpu", 1]);
  assert.deepEqual(parts.sort(), ["kernels.bin", "pteryx.wasm"]);
});

const kind = async (name) => {
  const { loadProgram } = await import("/web/dist/index.js");
  const program = await loadProgram(name, { cache: false, device: "gpu" });
  const { kind: used } = program.info.device;
  await program.dispose();
  return used;
};
for (const [what, name] of [["a part that only the CPU can run", "state/counter.pte"], ["an operator of networks", "ops/conv1d.pte"]]) {
  test(`a program with ${what}: the module that has everything after the first, and the GPU all the same`, async () => {
    const { value, parts } = await loaded(plain, kind, `/tests/fixtures/${name}`);
    assert.equal(value, "gpu");
    assert.deepEqual(parts.filter((part) => part.endsWith(".wasm")), ["pteryx.wasm", "pteryx_cpu.wasm"]);
    assert.ok(parts.includes("kernels_networks.bin"));
  });
}

test("info.device says which features are in use, and what the GPU lacks", async () => {
  const { value } = await loaded(plain, async () => {
    const { loadProgram } = await import("/web/dist/index.js");
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    const program = await loadProgram("/tests/fixtures/ops/add.pte", { cache: false, device: "gpu" });
    const now = await program.device();
    await program.dispose();
    return { offered: [...adapter.features], info: program.info.device, now };
  });
  const { offered, info, now } = value;
  assert.ok(!offered.includes("shader-f16"), "Chromium's software GPU has f16 by now: this test needs another one that lacks it");
  assert.deepEqual(info.features, ["subgroups"].filter((feature) => offered.includes(feature)));
  assert.deepEqual(info.fallback, [
    `${info.name} offers no shader-f16: products with f16 operands are computed in f32, which is slower.`,
    `${info.name} is a software GPU, which is slow.`,
  ]);
  assert.deepEqual([now.kind, now.name, now.features, now.fallback], ["gpu", info.name, info.features, info.fallback]);
});

test("the CPU: its module alone", async () => {
  const { value, parts } = await loaded(plain, add, { device: "cpu" });
  assert.deepEqual([value.sum, value.kind, value.threads], [3, "cpu", 1]);
  assert.deepEqual(parts, ["pteryx_cpu.wasm"]);
});

test("no GPU, or a software one: the CPU's module, and a sentence on it", async () => {
  const { value, parts } = await loaded(plain, add, {});
  assert.deepEqual([value.sum, value.kind], [3, "cpu"]);
  assert.match(value.fallback, /The CPU is used, which is slower than a GPU/);
  assert.deepEqual(parts, ["pteryx_cpu.wasm"]);
});

test("threads are asked for where memory cannot be shared: one does all", async () => {
  const { value, parts } = await loaded(plain, chat, { threads: 2 });
  assert.equal(value.threads, 1);
  assert.match(value.fallback, /One thread is used in place of 2: the page is not cross-origin isolated/);
  assert.deepEqual(parts, ["pteryx_cpu.wasm"]);
  // Nobody asked for more.
  for (const options of [{}, { threads: 1 }]) assert.equal((await loaded(plain, chat, options)).value.fallback, "");
});

test("a page that is isolated and has no room for shared memory: one thread, and a sentence on it", async () => {
  const { value, parts } = await loaded(isolated, async (options) => {
    const { Memory } = WebAssembly;
    WebAssembly.Memory = class extends Memory {
      constructor(descriptor) {
        if (descriptor.shared) throw new RangeError("could not allocate memory");
        super(descriptor);
      }
    };
    const { loadProgram } = await import("/web/dist/index.js");
    const program = await loadProgram("/tests/fixtures/ops/add.pte", { cache: false, device: "cpu", worker: false, ...options });
    const { threads, device } = program.info;
    await program.dispose();
    return { threads, fallback: device.fallback.join(" ") };
  }, { threads: 2 });
  assert.equal(value.threads, 1);
  assert.match(value.fallback, /One thread is used: there is no room for memory that threads could share/);
  assert.deepEqual(parts, ["pteryx_cpu.wasm"]);
});

test("threads in a page that is cross-origin isolated give the text of one", async () => {
  const one = await loaded(isolated, chat, { threads: 1 });
  assert.equal(one.value.threads, 1);
  assert.deepEqual(one.parts, ["pteryx_cpu.wasm"]);
  for (const worker of [true, false]) {
    const two = await loaded(isolated, chat, { threads: 2, worker });
    assert.deepEqual(two.value, { text: one.value.text, threads: 2, fallback: "" });
    assert.deepEqual(two.parts, ["pteryx_cpu_threads.wasm", "thread.js"]);
  }
  const three = await loaded(isolated, chat, { threads: 3 });
  assert.deepEqual(three.value, { text: one.value.text, threads: 3, fallback: "" });
});

test("a security policy in the header of every answer: the worker, its modules and its threads work", async () => {
  strict.file("/empty.html", { body: Buffer.from("<!doctype html><title>strict</title>"), type: "text/html" });
  const there = { at: "/empty.html" };
  const refused = await loaded(strict, () => new Promise((resolve) => {
    document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) => resolve(effectiveDirective));
    new Worker(URL.createObjectURL(new Blob())).onmessage = resolve;
  }), undefined, there);
  assert.equal(refused.value, "worker-src");
  for (const worker of [true, false]) {
    const { value, parts } = await loaded(strict, add, { device: "gpu", worker }, there);
    assert.deepEqual([value.sum, value.kind], [3, "gpu"]);
    assert.deepEqual(parts.sort(), ["kernels.bin", "pteryx.wasm"]);
    assert.equal(strict.requests("/web/dist/worker.js").length, worker ? 1 : 0);
  }
  const { value, parts } = await loaded(strict, add, { device: "cpu", threads: 2 }, there);
  assert.deepEqual([value.sum, value.threads], [3, 2]);
  assert.deepEqual(parts, ["pteryx_cpu_threads.wasm", "thread.js"]);
});

test("a package on another origin, such as a CDN, has its worker and its threads all the same", async () => {
  const policy = `default-src 'none'; script-src ${cdn.origin} 'wasm-unsafe-eval'; connect-src 'self' ${cdn.origin}; worker-src blob: ${cdn.origin}`;
  const body = Buffer.from(`<!doctype html><meta http-equiv="Content-Security-Policy" content="${policy}"><title>stranger</title>`);
  for (const server of [plain, isolated]) server.file("/stranger.html", { body, type: "text/html" });
  const there = { from: cdn, at: "/stranger.html" };
  const { value, parts } = await loaded(plain, add, { device: "gpu", from: cdn.origin }, there);
  assert.deepEqual([value.sum, value.kind], [3, "gpu"]);
  assert.deepEqual(parts.sort(), ["kernels.bin", "pteryx.wasm"]);
  assert.ok(cdn.requests("/web/dist/worker.js").length > 0);
  const one = await loaded(isolated, chat, { threads: 1, from: cdn.origin }, there);
  const two = await loaded(isolated, chat, { threads: 2, from: cdn.origin }, there);
  assert.deepEqual(two.value, { text: one.value.text, threads: 2, fallback: "" });
  assert.deepEqual(two.parts, ["pteryx_cpu_threads.wasm", "thread.js"]);
});

test("scripts of workers that a package on another origin makes are let go of", async () => {
  isolated.file("/stranger.html", { body: Buffer.from("<!doctype html><title>stranger</title>"), type: "text/html" });
  const { value } = await loaded(isolated, async (from) => {
    const { loadProgram } = await import(`${from}/web/dist/index.js`);
    const made = [];
    const { createObjectURL, revokeObjectURL } = URL;
    URL.createObjectURL = (blob) => made.push(createObjectURL(blob)) && made.at(-1);
    URL.revokeObjectURL = (url) => {
      revokeObjectURL(url);
      if (made.includes(url)) made.splice(made.indexOf(url), 1);
    };
    const program = await loadProgram("/tests/fixtures/ops/add.pte", { cache: false, device: "cpu", threads: 2, worker: false });
    const here = made.length; // of the thread that this page started
    await program.dispose();
    await (await loadProgram("/tests/fixtures/ops/add.pte", { cache: false, device: "cpu" })).dispose();
    return [here, made.length];
  }, cdn.origin, { from: cdn, at: "/stranger.html" });
  assert.deepEqual(value, [0, 0]);
});

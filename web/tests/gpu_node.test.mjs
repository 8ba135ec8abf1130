// The GPU as the package asks for it and feeds it: all of its limits, one call for each step of a text, little time of the script. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { bundle } from "./support/bundle.mjs";

const root = new URL("../../", import.meta.url);
process.env.VK_ICD_FILENAMES ??= fileURLToPath(new URL(".deps/lavapipe/lvp_icd.json", root));
const { loadModel, loadProgram } = await import("../dist/node.js");
const { create, globals } = await import("webgpu");
Object.assign(globalThis, globals);
let bundled;
before(async () => (bundled = await bundle(["src/engine/gpu_device.ts"])));
after(() => bundled.remove());

test("the device has the adapter's own limits", async () => {
  const { openGpu } = await bundled.load("gpu_device");
  const gpu = create([]);
  const { limits } = await gpu.requestAdapter({ powerPreference: "high-performance" });
  const { device, description } = await openGpu(gpu);
  const plain = await (await gpu.requestAdapter()).requestDevice();
  let raised = 0;
  for (const name of [
    "maxBufferSize", "maxStorageBufferBindingSize", "maxStorageBuffersPerShaderStage", "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX", "maxComputeWorkgroupSizeY", "maxComputeWorkgroupSizeZ", "maxComputeWorkgroupsPerDimension",
  ]) {
    assert.equal(device.limits[name], limits[name], name);
    assert.equal(description[name], limits[name], name);
    if (device.limits[name] > plain.limits[name]) raised++;
  }
  assert.ok(raised > 0, "a device that asks for nothing has less");
  device.destroy();
  plain.destroy();
});

test("of the adapter's features the device has those that kernels use, and what it lacks is said", async () => {
  const { openGpu } = await bundled.load("gpu_device");
  const gpu = create([]);
  const own = [...(await gpu.requestAdapter()).features];
  const used = ["shader-f16", "subgroups"];
  const sentence = (name) => `${name} offers no shader-f16: products with f16 operands are computed in f32, which is slower.`;
  for (const offered of [own, own.filter((name) => name !== "shader-f16"), own.filter((name) => name !== "subgroups"), ["timestamp-query"], []]) {
    let asked;
    const requestAdapter = async (options) => {
      const adapter = await gpu.requestAdapter(options);
      const requestDevice = (wanted) => adapter.requestDevice((asked = wanted));
      return { features: new Set(offered), limits: adapter.limits, info: adapter.info, requestDevice };
    };
    const { device, name, features, lacks, description } = await openGpu({ requestAdapter });
    const expected = used.filter((feature) => offered.includes(feature));
    assert.deepEqual([asked.requiredFeatures, features, description.features], [expected, expected, expected]);
    assert.deepEqual(used.filter((feature) => device.features.has(feature)), expected);
    assert.equal(lacks.includes(sentence(name)), !expected.includes("shader-f16"), lacks.join(" "));
    device.destroy();
  }
});

for (const hanging of ["requestAdapter", "requestDevice"]) {
  test(`a load while ${hanging} hangs can be cancelled, and a device that comes later is closed`, { timeout: 20_000 }, async () => {
    const gpu = create([]);
    const adapter = await gpu.requestAdapter();
    const device = await adapter.requestDevice();
    let arrive;
    const answer = (name, value) => (name === hanging ? new Promise((resolve) => (arrive = () => resolve(value))) : Promise.resolve(value));
    const fake = { features: new Set(), limits: adapter.limits, info: adapter.info, requestDevice: () => answer("requestDevice", device) };
    const navigator = Object.getOwnPropertyDescriptor(globalThis, "navigator");
    Object.defineProperty(globalThis, "navigator", { value: { gpu: { requestAdapter: () => answer("requestAdapter", fake) } }, configurable: true });
    try {
      for (const choice of ["gpu", "auto"]) {
        arrive = undefined;
        const controller = new AbortController();
        const loading = loadProgram(fileURLToPath(new URL("tests/fixtures/ops/add.pte", root)), { device: choice, signal: controller.signal });
        loading.catch(() => undefined);
        while (arrive === undefined) await sleep(5);
        controller.abort();
        await assert.rejects(loading, { code: "cancelled" });
      }
      arrive();
      assert.equal((await device.lost).reason, "destroyed");
    } finally {
      if (navigator === undefined) delete globalThis.navigator;
      else Object.defineProperty(globalThis, "navigator", navigator);
    }
  });
}

test("a step of a text is one submit, and its time in the script is counted", async () => {
  const model = await loadModel(fileURLToPath(new URL("tests/fixtures/web/chat.pte", root)), { device: "gpu" });
  const counters = () => model.connection.call("counters", []);
  const options = { maxTokens: 12, ignoreEnd: true };
  await model.generate("Hello", options).result; // compiles what it needs
  const begun = await counters();
  const { setTimeout: setTimer } = globalThis;
  let timers = 0;
  globalThis.setTimeout = (...args) => (timers++, setTimer(...args));
  const { newTokens, hostMsPerToken, decodeMs, promptMs } = await model.generate("Once", options).result;
  globalThis.setTimeout = setTimer;
  const done = await counters();
  await model.dispose();
  assert.equal(newTokens, 12);
  const submits = done.submits - begun.submits;
  assert.ok(submits > 0 && submits <= newTokens + 1, `${submits} submits for ${newTokens} tokens`);
  assert.ok(done.dispatches - begun.dispatches > 5 * submits, "each with many dispatches");
  assert.ok(timers <= 2 + (promptMs + decodeMs) / 500, `${timers} timers in ${promptMs + decodeMs} ms`);
  assert.ok(hostMsPerToken > 0 && hostMsPerToken < decodeMs, `${hostMsPerToken} ms of ${decodeMs}`);
});

test("a text that waits for the GPU is stopped at once, and what came late is used by the next one", { timeout: 120_000 }, async () => {
  const chat = fileURLToPath(new URL("tests/fixtures/web/chat.pte", root));
  const options = { maxTokens: 6, ignoreEnd: true };
  const other = await loadModel(chat, { device: "gpu" });
  const { text } = await other.generate("Hello", options).result;
  await other.dispose();

  const model = await loadModel(chat, { device: "gpu" });
  const { createComputePipelineAsync } = GPUDevice.prototype;
  const held = [];
  GPUDevice.prototype.createComputePipelineAsync = function (...descriptor) {
    return new Promise((resolve, reject) => held.push(() => createComputePipelineAsync.apply(this, descriptor).then(resolve, reject)));
  };
  try {
    const stop = new AbortController();
    const generation = model.generate("Hello", { ...options, signal: stop.signal });
    while (held.length === 0) await sleep(10);
    await sleep(100);
    const began = performance.now();
    stop.abort();
    const { reason, newTokens } = await generation.result;
    assert.deepEqual([reason, newTokens], ["cancelled", 0]);
    assert.ok(performance.now() - began < 500, `${performance.now() - began} ms`); // less than a waiting text would sleep
    const next = model.generate("Hello", options).result;
    GPUDevice.prototype.createComputePipelineAsync = createComputePipelineAsync;
    for (const compile of held) compile();
    assert.equal((await next).text, text);
    await model.dispose();
  } finally {
    GPUDevice.prototype.createComputePipelineAsync = createComputePipelineAsync;
  }
});

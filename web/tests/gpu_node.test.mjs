// The GPU as the package asks for it and feeds it: all of its limits, one call for each step of a text, little time of the script. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { bundle } from "./support/bundle.mjs";

const root = new URL("../../", import.meta.url);
process.env.VK_ICD_FILENAMES ??= fileURLToPath(new URL(".deps/lavapipe/lvp_icd.json", root));
const { loadModel } = await import("../dist/node.js");
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

test("a step of a text is one submit, and its time in the script is counted", async () => {
  const model = await loadModel(fileURLToPath(new URL("tests/fixtures/web/chat.pte", root)), { device: "gpu" });
  const counters = () => model.connection.call("counters", []);
  const options = { maxTokens: 12, ignoreEnd: true };
  await model.generate("Hello", options).result; // compiles what it needs
  const begun = await counters();
  const { newTokens, hostMsPerToken, decodeMs } = await model.generate("Once", options).result;
  const done = await counters();
  await model.dispose();
  assert.equal(newTokens, 12);
  const submits = done.submits - begun.submits;
  assert.ok(submits > 0 && submits <= newTokens + 1, `${submits} submits for ${newTokens} tokens`);
  assert.ok(done.dispatches - begun.dispatches > 5 * submits, "each with many dispatches");
  assert.ok(hostMsPerToken > 0 && hostMsPerToken < decodeMs, `${hostMsPerToken} ms of ${decodeMs}`);
});

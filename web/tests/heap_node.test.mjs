// Weights go to the GPU without passing through WebAssembly memory, however many they are. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { writeSparseGguf } from "./support/gguf.mjs";

process.env.VK_ICD_FILENAMES ??= fileURLToPath(new URL("../../.deps/lavapipe/lvp_icd.json", import.meta.url));
const { loadModel } = await import("../dist/node.js");

const kMostBytes = 64 * 2 ** 20;
// 700 million parameters in 4 bits, whose scales alone take more than that, and as many words as models of a billion know.
const kModel = { hidden: 1024, ffn: 4096, layers: 36, type: "q4_0", words: 128_000 };
let folder, path;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "pteryx-heap-"));
  path = join(folder, "large.gguf");
  await writeSparseGguf(path, kModel);
});
after(() => rm(folder, { recursive: true, force: true }));

for (const precision of ["f32", "f16"]) {
  test(`the heap of a large model is small at ${precision}`, async () => {
    const model = await loadModel(path, { device: "gpu", precision, worker: false, cacheFolder: folder });
    try {
      assert.equal((await model.encode("hello")).length, 3, "he, ll and o");
      const { heapBytes, memoryBytes } = await model.device();
      assert.ok(memoryBytes > 5 * kMostBytes, `${memoryBytes} bytes on the GPU`);
      assert.ok(heapBytes <= kMostBytes, `a heap of ${heapBytes} bytes, expected at most ${kMostBytes}`);
    } finally {
      await model.dispose();
    }
  });
}

// Every committed program through the package in Node, on the CPU and on the software GPU. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { verifyManifest } from "./support/verify.mjs";

const root = new URL("../../", import.meta.url);
process.env.VK_ICD_FILENAMES ??= fileURLToPath(new URL(".deps/lavapipe/lvp_icd.json", root));
const pteryx = await import("../dist/node.js");

for (const device of ["cpu", "gpu"]) for (const folder of ["ops", "values", "state", "llm", "decoders"]) {
  test(`programs in ${folder} on the ${device}`, async () => {
    const at = new URL(`tests/fixtures/${folder}/`, root);
    const manifest = JSON.parse(await readFile(new URL("manifest.json", at), "utf8"));
    const bytes = async (name) => new Uint8Array(await readFile(new URL(name, at)));
    const outcomes = await verifyManifest(pteryx, manifest, bytes, (name) => fileURLToPath(new URL(name, at)), { device });
    assert.deepEqual(outcomes.filter(([, problem]) => problem !== ""), []);
    assert.equal(outcomes.length, manifest.cases.length);
  });
}

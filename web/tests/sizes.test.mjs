// What a page loads stays small. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { test } from "node:test";
import { excess, limits, measure } from "../sizes.mjs";

test("a chat on a GPU loads no more than the limits", async () => {
  const chat = await measure(new URL("../dist/", import.meta.url));
  for (const [name, [raw, gzip]] of Object.entries(chat.files)) console.log(`${name}: ${raw} bytes, ${gzip} compressed`);
  console.log(`all: ${chat.raw} of ${limits.raw} bytes, ${chat.gzip} of ${limits.gzip} compressed`);
  console.log(`converter: ${chat.converter} of ${limits.converter} bytes`);
  assert.deepEqual(excess(chat), []);
  assert.ok(Object.keys(chat.files).length >= 4, "the scripts were found");
});

test("what is larger is named", () => {
  assert.deepEqual(excess({ ...limits, raw: limits.raw + 1 }), [`a chat on a GPU loads ${limits.raw + 1} bytes: expected at most ${limits.raw}`]);
  assert.deepEqual(excess({ ...limits, converter: limits.converter + 1 }), [`a GGUF file loads a converter of ${limits.converter + 1} bytes: expected at most ${limits.converter}`]);
});

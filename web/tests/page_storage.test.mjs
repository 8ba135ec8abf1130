// What the page remembers, and what it says about failures. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { importTs } from "./support/import_ts.mjs";

const storage = await importTs("page/src/storage.ts");
const { kErrorTexts, failureOf } = await importTs("page/src/error_texts.ts");

function memory(entries = {}) {
  const map = new Map(Object.entries(entries));
  return { getItem: (k) => map.get(k) ?? null, setItem: (k, v) => void map.set(k, v), removeItem: (k) => void map.delete(k), map };
}

test("settings come back, within their ranges", () => {
  const store = new storage.Store(memory());
  const initial = store.get("settings", storage.readSettings);
  assert.equal(initial.temperature, storage.kSampling.temperature.initial);
  assert.equal(initial.seed, null);
  assert.ok(store.set("settings", { ...initial, temperature: 99, topK: 3.6, topP: "x", seed: -1, system: "Be brief." }));
  const read = store.get("settings", storage.readSettings);
  assert.deepEqual([read.temperature, read.topK, read.topP, read.seed, read.system], [2, 4, storage.kSampling.topP.initial, null, "Be brief."]);
});

test("what is damaged, forbidden or full does no harm", () => {
  const broken = new storage.Store(memory({ "pteryx.settings": "{oops", "pteryx.turns": '[{"role":"root","content":"x"},{"role":"user","content":"a"},7]' }));
  assert.equal(broken.get("settings", storage.readSettings).system, "");
  assert.deepEqual(broken.get("turns", storage.readTurns), [{ role: "user", content: "a" }]);
  const none = new storage.Store(null);
  assert.equal(none.set("a", 1), false);
  assert.deepEqual(none.get("turns", storage.readTurns), []);
  const full = new storage.Store({ ...memory(), setItem() { throw new DOMException("full", "QuotaExceededError"); } });
  assert.equal(full.set("a", 1), false);
});

test("an answer keeps its figures", () => {
  const facts = { tokens: 3, promptTokens: 9, firstTokenMs: 12, tokensPerSecond: 4, reason: "end", seed: 1 };
  assert.deepEqual(storage.readTurns([{ role: "assistant", content: "a", facts }])[0].facts, facts);
  assert.equal(storage.readTurns([{ role: "assistant", content: "a", facts: { tokens: "3" } }])[0].facts, undefined);
});

test("settings that are off are not passed on", () => {
  const settings = storage.readSettings({ temperature: 0, topK: 40, repetitionPenalty: 1, maxTokens: 7 });
  assert.deepEqual(storage.generateOptions(settings, 5), { maxTokens: 7, temperature: 0, seed: 5 });
  const drawn = storage.readSettings({ temperature: 0.5, topK: 40, topP: 0.9, minP: 0, repetitionPenalty: 1.2, maxTokens: 7 });
  assert.deepEqual(storage.generateOptions(drawn, 5), { maxTokens: 7, temperature: 0.5, seed: 5, topK: 40, topP: 0.9, repetitionPenalty: 1.2 });
});

test("a system prompt comes first, if there is one", () => {
  const turns = [{ role: "user", content: "hi" }];
  assert.deepEqual(storage.messagesOf(turns, " "), turns);
  assert.deepEqual(storage.messagesOf(turns, " Be brief. ")[0], { role: "system", content: "Be brief." });
});

test("every code of the package has a title and says what to do next", () => {
  const source = readFileSync(new URL("../src/errors.ts", import.meta.url), "utf8");
  const codes = [...source.slice(0, source.indexOf("export class")).matchAll(/\| "([a-z-]+)"/g)].map((m) => m[1]);
  assert.ok(codes.length >= 14);
  assert.deepEqual(Object.keys(kErrorTexts).sort(), codes.sort());
  for (const { title, next } of Object.values(kErrorTexts)) {
    assert.match(title, /^[A-Z].*[^.]$/);
    assert.match(next, /^[A-Z].*\.$/);
  }
});

test("whatever is thrown becomes a failure", () => {
  assert.equal(failureOf(Object.assign(new Error("gone"), { code: "http" })).code, "http");
  assert.equal(failureOf(new DOMException("x", "AbortError")).code, "cancelled");
  assert.equal(failureOf("odd").code, "internal");
  assert.equal(failureOf(Object.assign(new Error("x"), { code: "toString" })).code, "internal");
});

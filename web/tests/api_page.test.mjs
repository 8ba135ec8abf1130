// docs/web-api.md: what the package exports has comments, and the page is made of them. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { kPage, makePage } from "../api_page.mjs";

test("every export and every member has a comment, and the page is up to date", async () => {
  const { text, problems } = makePage();
  assert.deepEqual(problems, []);
  assert.ok(text === (await readFile(kPage, "utf8")), "docs/web-api.md is out of date: run node web/api_page.mjs");
});

test("the page has all that the package has", async () => {
  const page = await readFile(kPage, "utf8");
  for (const name of Object.keys(await import("../dist/index.js"))) assert.match(page, new RegExp(`^### ${name}$`, "m"));
  const types = await readFile(new URL("../dist/types/types.d.ts", import.meta.url), "utf8");
  const names = [...types.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name);
  assert.ok(names.length > 20, names.join());
  for (const name of names) assert.match(page, new RegExp(`^### ${name}$`, "m"));
  // What a type refers to is on the page, too.
  const known = new Set([...page.matchAll(/^### (\w+)$/gm)].map(([, name]) => name));
  const standard = /^(Promise|AsyncIterable|AbortSignal|Array|ArrayBuffer|Blob|Date|Error|ErrorOptions|Pick|Readonly|Record|URL|(Big)?(Int|Uint|Float)\d+Array)$/;
  const used = [...page.matchAll(/`([^`\n]+)`|```ts\n([^`]+)```/g)].flatMap(([, a, b]) => (a ?? b).match(/(?<![\w."'/-])[A-Z]\w+(?=[\s[\]|<>,;)&?]|$)/g) ?? []);
  const unknown = [...new Set(used)].filter((name) => !known.has(name) && !standard.test(name) && !/^(CPU|GPU|SHA|KV)$/.test(name));
  assert.deepEqual(unknown, []);
});

test("what has no comment is named", async () => {
  const folder = await mkdtemp(join(tmpdir(), "pteryx-api-"));
  try {
    await mkdir(join(folder, "src"));
    await writeFile(join(folder, "tsconfig.json"), '{ "compilerOptions": { "target": "ES2022", "types": [] }, "include": ["src"] }');
    await writeFile(join(folder, "src/other.ts"), "export interface Bare {\n  plain: string;\n  /** Said. */\n  said: number;\n  /** Done. */\n  act(): void;\n}\n/** Which. */\nexport type Which = /** One. */ | 1 | 2;\n");
    await writeFile(join(folder, "src/index.ts"), 'export type { Bare, Which } from "./other.js";\nexport function quiet(): void {}\n');
    const { text, problems } = makePage(folder);
    assert.deepEqual(problems.sort(), ["Bare.plain: has no comment", "Bare: has no comment", "Which: 2 has no comment", "quiet: has no comment"]);
    assert.match(text, /\| `said` \| `number` \| Said\. \|/);
    assert.match(text, /act\(\): void/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

// What a page loads of the package for a chat on a GPU, and how large it may be. SPDX-License-Identifier: BSD-3-Clause
import { readFile, stat } from "node:fs/promises";
import { gzipSync } from "node:zlib";

/** Bytes of all files together: as they are, and each compressed by zlib at its best. `converter`: what a GGUF file needs besides, as it is. */
export const limits = { raw: 1_300_000, gzip: 450_000, converter: 250_000 };

/** The package's scripts: `from` and what they import, each once. */
async function scriptsOf(dist, from) {
  const found = new Set();
  const visit = async (name) => {
    if (found.has(name)) return;
    found.add(name);
    const text = await readFile(new URL(name, dist), "utf8");
    for (const [, imported] of text.matchAll(/(?:from|import)\s*\(?\s*"\.\/([\w.-]+\.js)"/g)) await visit(imported);
  };
  for (const name of from) await visit(name);
  return [...found].sort();
}

/** A file's size as it is, and compressed. */
async function sizesOf(url) {
  const bytes = await readFile(url);
  return [bytes.length, gzipSync(bytes, { level: 9 }).length];
}
/** Sums of both. */
function sum(files) {
  const of = (i) => Object.values(files).reduce((total, sizes) => total + sizes[i], 0);
  return { raw: of(0), gzip: of(1) };
}

/** Sizes of the files that `dist` has for a chat on a GPU, their sum, and the converter's: `{ files: { NAME: [raw, gzip] }, raw, gzip, converter }`. */
export async function measure(dist) {
  const files = {};
  for (const name of ["pteryx.wasm", "kernels.bin", ...(await scriptsOf(dist, ["index.js", "worker.js"]))]) {
    files[name] = await sizesOf(new URL(name, dist));
  }
  const { size: converter } = await stat(new URL("pteryx_convert.wasm", dist));
  return { files, ...sum(files), converter };
}

/** Sizes of the scripts and the module that the page in `folder` loads for the same: its own and the package's. */
export async function measurePage(folder) {
  const files = {};
  const page = new URL("main.js", folder);
  const text = await readFile(page, "utf8");
  const chunks = [...text.matchAll(/from\s*"\.\/(chunks\/[\w.-]+\.js)"/g)].map(([, name]) => name);
  for (const name of ["main.js", "theme.js", ...chunks]) files[name] = await sizesOf(new URL(name, folder));
  for (const name of ["pteryx.wasm", ...(await scriptsOf(new URL("pteryx/", folder), ["index.js", "worker.js"]))]) files[`pteryx/${name}`] = await sizesOf(new URL(`pteryx/${name}`, folder));
  return { files, ...sum(files) };
}

/** What is too large, in sentences. */
export function excess({ raw, gzip, converter }) {
  return [
    ["a chat on a GPU loads", "bytes", raw, limits.raw], ["a chat on a GPU loads", "bytes compressed", gzip, limits.gzip],
    ["a GGUF file loads a converter of", "bytes", converter, limits.converter],
  ]
    .filter(([, , size, most]) => size > most)
    .map(([who, what, size, most]) => `${who} ${size} ${what}: expected at most ${most}`);
}

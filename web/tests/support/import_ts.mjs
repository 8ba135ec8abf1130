// TypeScript sources in tests, through the bundler that builds the page. SPDX-License-Identifier: BSD-3-Clause
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const kWeb = join(dirname(fileURLToPath(import.meta.url)), "../..");

/** The text of a bundle: an ES module, or a script that leaves the exports in `globalName`. `path` is relative to web/. */
export async function bundleTs(path, globalName) {
  const format = globalName ? { format: "iife", globalName } : { format: "esm" };
  const result = await build({ entryPoints: [join(kWeb, path)], bundle: true, write: false, target: "es2022", logLevel: "error", ...format });
  return result.outputFiles[0].text;
}

/** The exports of a source file that needs no browser. */
export async function importTs(path) {
  const text = await bundleTs(path);
  return import(`data:text/javascript;base64,${Buffer.from(text).toString("base64")}`);
}

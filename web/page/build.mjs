// node web/page/build.mjs [FOLDER]: builds the page into a folder (web/page/dist) that can be put anywhere: it holds relative addresses only.
// The package is taken from web/dist, which `node web/build.mjs` makes. SPDX-License-Identifier: BSD-3-Clause
import { cp, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const kPage = dirname(fileURLToPath(import.meta.url));
const kPackage = join(kPage, "../dist");

/**
 * @param {{ folder?: string, engine?: string | null, models?: { name: string, url: string, bytes?: number, about?: string }[] }} [options]
 *   `engine`: the built package; `null` leaves it out, which the page reports as a failure. `models`: what the page suggests; in models.json afterwards
 */
export async function buildPage({ folder = join(kPage, "dist"), engine = kPackage, models = [] } = {}) {
  if (engine && !(await stat(join(engine, "index.js")).catch(() => null))) throw new Error(`${engine}/index.js is missing: run node web/build.mjs first`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const common = { bundle: true, minify: true, sourcemap: true, target: ["es2022", "safari16.4"], logLevel: "error", legalComments: "none", charset: "utf8" };
  await Promise.all([
    build({ ...common, entryPoints: { main: join(kPage, "src/main.ts") }, outdir: folder, format: "esm", splitting: true, chunkNames: "chunks/[name]-[hash]" }),
    build({ ...common, entryPoints: { theme: join(kPage, "src/theme_first.ts") }, outdir: folder, format: "iife" }),
    build({ ...common, entryPoints: { style: join(kPage, "style/style.css") }, outdir: folder }),
    ...["index.html", "icon.svg"].map((name) => cp(join(kPage, name), join(folder, name))),
    writeFile(join(folder, "models.json"), JSON.stringify(models, null, 2)),
    engine && cp(engine, join(folder, "pteryx"), { recursive: true, filter: (path) => !/[\\/](types([\\/]|$)|cli\.js|node[-.])/.test(path.slice(engine.length)) }),
  ]);
  const sizes = {};
  const chunks = (await readdir(join(folder, "chunks"))).filter((name) => name.endsWith(".js")).map((name) => `chunks/${name}`);
  for (const name of ["main.js", "theme.js", "style.css", "index.html", ...chunks]) {
    const bytes = await readFile(join(folder, name));
    sizes[name] = { bytes: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length };
  }
  return { folder, sizes };
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { folder, sizes } = await buildPage(process.argv[2] ? { folder: resolve(process.argv[2]) } : {});
  for (const [name, { bytes, gzip }] of Object.entries(sizes)) console.log(`${name}: ${bytes} bytes, ${gzip} compressed`);
  console.log(`built in ${folder}`);
}

// Sources as one file that Node and browsers can import. SPDX-License-Identifier: BSD-3-Clause
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

/** The folder `web/`. */
export const WEB = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Bundles entry points of `web/` (such as `src/source/index.ts`) as ES modules into a fresh folder.
 * @param {string[]} entries paths below `web/`; the results are named after the last part, or after its folder where that is `index`
 * @returns {Promise<{ folder: string, load: (name: string) => Promise<any>, remove: () => Promise<void> }>} `load`: imports a result in Node
 */
export async function bundle(entries) {
  const folder = await mkdtemp(join(tmpdir(), "pteryx-bundle-"));
  const name = (entry) => (basename(entry) === "index.ts" ? basename(join(entry, "..")) : basename(entry).replace(/\.\w+$/, ""));
  await build({
    entryPoints: entries.map((entry) => ({ in: join(WEB, entry), out: name(entry) })),
    bundle: true, format: "esm", platform: "browser", target: "es2022", outdir: folder, logLevel: "error", external: ["node:*", "webgpu"],
  });
  return {
    folder,
    load: (result) => import(pathToFileURL(join(folder, `${result}.js`)).href),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

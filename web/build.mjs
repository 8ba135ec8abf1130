// node web/build.mjs [WASM_FOLDER]: makes dist/, what the npm package holds, of src/ and of the modules in build-web/ (scripts/build web).
// SPDX-License-Identifier: BSD-3-Clause
import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { bySimilarity, nameBySimilarity } from "./order.mjs";
import { excess, measure } from "./sizes.mjs";

const web = new URL("./", import.meta.url);
const dist = new URL("dist/", web);
const modules = process.argv[2] === undefined ? new URL("../build-web/web/module/", web) : new URL(`${process.argv[2]}/`, `file://${process.cwd()}/`);
const run = promisify(execFile);
const require = createRequire(import.meta.url);

const kFeatures = ["simd", "threads", "bulk-memory", "sign-ext", "mutable-globals", "nontrapping-float-to-int", "multivalue", "reference-types"];

/**
 * For modules whose size counts. What C++ defines does not trap (but what no branch takes may: it is not to be run ahead, as with
 * --ignore-implicit-traps), the stack is where memory begins, and large functions with one caller compress better on their own.
 */
const kSmall = ["--converge", "-Oz", "--traps-never-happen", "--low-memory-unused", "--one-caller-inline-max-function-size=0"];
const kFast = ["-O2"];

/** Optimises a module; the result is kept beside it and made again only when the module or the scripts that make it have changed. */
async function optimize(name, options) {
  const from = fileURLToPath(new URL(name, modules));
  const kept = `${from}.opt`;
  const scripts = [import.meta.url, new URL("order.mjs", web)].map((url) => fileURLToPath(url));
  const times = await Promise.all([kept, from, ...scripts].map((file) => stat(file).then((s) => s.mtimeMs, () => 0)));
  if (times[1] === 0) throw new Error(`${from} is missing: run scripts/build web`);
  if (times[0] < Math.max(...times)) {
    const tool = require.resolve("binaryen/package.json").replace(/package\.json$/, "bin/wasm-opt");
    const optimized = (input, ...how) =>
      run(process.execPath, [tool, input, ...how, ...kFeatures.map((feature) => `--enable-${feature}`), "--strip-producers", "--strip-target-features", "-o", kept]);
    await optimized(from, ...options);
    if (options === kSmall) {
      const named = `${from}.named`;
      await writeFile(named, nameBySimilarity(await readFile(kept)));
      await optimized(named, "--reorder-functions-by-name");
      await rm(named);
    }
  }
  await copyFile(kept, new URL(name, dist));
}

/** Kernels of the families that module/gpu_only.cpp leaves out; matrix products repack weights with one of convolution's. */
const kOfNetworks = /^(conv\/(?!kernels\/conv_pack_halves\.)|batch_norm|distance|embedding_bag|grid_|pool\b|scan|sort|upsample)/;

/** The GPU's kernels, which only who has a GPU loads: those of language models, and the others. */
async function packKernels() {
  const packed = await readFile(new URL("../../generated/pteryx/ops/shaders/kernels.txt", modules), "utf8");
  const files = packed.match(/[^\0]*\0[^\0]*\0/g);
  const write = async (name, wanted) => {
    const to = new URL(name, dist);
    const texts = files.filter(wanted);
    await writeFile(to, bySimilarity(texts.map((text) => Buffer.from(text))).map((i) => texts[i]).join(""));
    // 4 % smaller than zlib at its best, in the same format.
    const { stdout } = await run("zopfli", ["--zlib", "-c", fileURLToPath(to)], { encoding: "buffer", maxBuffer: 2 ** 24 });
    await writeFile(to, stdout);
  };
  await write("kernels.bin", (file) => !kOfNetworks.test(file));
  await write("kernels_networks.bin", (file) => kOfNetworks.test(file));
}

/** What browsers load has nothing in it that only Node calls. */
const kForBrowsers = {
  plugins: [
    {
      name: "no-node",
      setup: (build) => build.onResolve({ filter: /\/node_\w+\.js$/ }, () => ({ path: fileURLToPath(new URL("src/source/no_node.ts", web)) })),
    },
  ],
};

/** `entries`: names in dist/ and sources. */
function bundle(entries, options) {
  const entryPoints = Object.entries(entries).map(([out, source]) => ({ out, in: `src/${source}` }));
  return build({
    absWorkingDir: fileURLToPath(web),
    entryPoints,
    outdir: "dist",
    bundle: true,
    splitting: entryPoints.length > 1,
    format: "esm",
    target: "es2022",
    minify: true,
    sourcemap: true,
    external: ["node:*", "webgpu"],
    legalComments: "none",
    ...options,
  });
}

await rm(dist, { recursive: true, force: true });
await mkdir(dist, { recursive: true });
await Promise.all([
  optimize("pteryx.wasm", kSmall),
  optimize("pteryx_cpu.wasm", kFast),
  optimize("pteryx_cpu_threads.wasm", kFast),
  optimize("pteryx_convert.wasm", kSmall),
  packKernels(),
  bundle({ index: "index.ts", worker: "worker.ts" }, kForBrowsers),
  bundle({ node: "index.ts", cli: "cli.ts" }, { chunkNames: "node-[name]-[hash]" }),
  bundle({ thread: "thread.ts" }), // for both
  run(process.execPath, [fileURLToPath(new URL("node_modules/typescript/bin/tsc", web)), "-p", fileURLToPath(web), "--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--outDir", fileURLToPath(new URL("types/", dist))]),
  copyFile(new URL("../LICENSE", web), new URL("LICENSE", web)).catch(() => undefined),
]);

const chat = await measure(dist);
const sizes = { ...chat.files };
for (const name of ["kernels_networks.bin", "pteryx_cpu.wasm", "pteryx_cpu_threads.wasm", "pteryx_convert.wasm"]) {
  const bytes = await readFile(new URL(name, dist));
  sizes[name] = [bytes.length, gzipSync(bytes, { level: 9 }).length];
}
await writeFile(new URL("sizes.json", dist), JSON.stringify(sizes));
for (const [name, [raw, gzip]] of Object.entries(sizes)) console.log(`${name}: ${raw} bytes, ${gzip} compressed`);
console.log(`a chat on a GPU: ${chat.raw} bytes, ${chat.gzip} compressed`);
for (const sentence of excess(chat)) console.error(`too large: ${sentence}`);
if (excess(chat).length > 0) process.exitCode = 1;

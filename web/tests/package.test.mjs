// What npm packs, as a stranger uses it: installed into a project elsewhere, built with Vite, opened in Chromium. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build, createServer } from "vite";
import { launchBrowser } from "./support/browser.mjs";
import { makeGguf } from "./support/gguf.mjs";
import { startServer } from "./support/server.mjs";

const run = promisify(execFile);
const web = fileURLToPath(new URL("../", import.meta.url));
const add = fileURLToPath(new URL("../../tests/fixtures/ops/add.pte", import.meta.url));
let folder;
let files;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "pteryx-package-"));
  const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], { cwd: web });
  const [packed] = JSON.parse(stdout);
  files = packed.files.map((file) => file.path);
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "stranger", private: true, type: "module" }));
  await run("npm", ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", join(folder, packed.filename)], { cwd: folder });
});
after(() => rm(folder, { recursive: true, force: true }));

test("the package holds what it needs, and nothing else", async () => {
  for (const name of ["package.json", "README.md", "LICENSE", "dist/index.js", "dist/node.js", "dist/worker.js", "dist/thread.js", "dist/cli.js", "dist/pteryx.wasm", "dist/kernels.bin", "dist/kernels_networks.bin", "dist/pteryx_cpu.wasm", "dist/pteryx_cpu_threads.wasm", "dist/pteryx_convert.wasm", "dist/types/index.d.ts"])
    assert.ok(files.includes(name), `${name} is missing`);
  assert.deepEqual(files.filter((name) => !/^(dist\/|package\.json$|README\.md$|LICENSE$)/.test(name)), []);
  const description = JSON.parse(await readFile(join(folder, "node_modules/pteryx/package.json"), "utf8"));
  assert.equal(description.license, "BSD-3-Clause");
  assert.equal(description.dependencies, undefined);
});

test("the installed command answers, and loads a GGUF file", async () => {
  const command = join(folder, "node_modules/.bin/pteryx");
  const { version } = JSON.parse(await readFile(join(web, "package.json"), "utf8"));
  assert.equal((await run(command, ["--version"])).stdout, `${version}\n`);
  await writeFile(join(folder, "small.gguf"), makeGguf());
  const env = { ...process.env, PTERYX_CACHE: join(folder, "cache") };
  const { stdout, stderr } = await run(command, ["chat", "small.gguf", "-p", "Hello", "--max-tokens", "3"], { cwd: folder, env });
  assert.notEqual(stdout, "");
  assert.match(stderr, /converting small\.gguf.*\n.*The CPU is used, .*the package 'webgpu' is not installed/);
});

/** Examples of a README file, as a module. */
async function examplesOf(readme) {
  const text = await readFile(readme, "utf8");
  const examples = [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, example]) => example);
  assert.ok(examples.length > 0, String(readme));
  return `${examples.join("")}
    declare const out: HTMLElement, bar: HTMLProgressElement, signal: AbortSignal, file: File, pixels: Float32Array;`;
}

test("its types are those of a strict project, also of one that does not know WebGPU, and the examples are written in them", async () => {
  await writeFile(join(folder, "readme.ts"), await examplesOf(new URL("../../README.md", import.meta.url)));
  await writeFile(join(folder, "readme_of_package.ts"), await examplesOf(join(folder, "node_modules/pteryx/README.md")));
  await writeFile(join(folder, "stranger.ts"), `
    import { cache, loadModel, loadProgram, PteryxError, type ErrorCode, type Model, type Tensor } from "pteryx";
    const model: Model = await loadModel(new URL("https://example.org/model.gguf"), { device: "gpu", precision: "f16", onProgress: ({ fraction }) => console.log(fraction) });
    for await (const { text } of model.chat([{ role: "user", content: "Hello" }], { maxTokens: 5, signal: AbortSignal.timeout(1000) })) console.log(text);
    const { output0 } = await (await loadProgram(new Blob([]))).run("forward", [new Float32Array(4), [1, 2], { dtype: "f32", dims: [1], data: new Float32Array(1) }]);
    const code: ErrorCode = new PteryxError("io", "gone").code;
    console.log((output0 as Tensor).dims, code, (await cache.list()).map(({ url }) => url));
    // @ts-expect-error: there is no such precision
    await loadModel("model.pte", { precision: "fp16" });
  `);
  const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
  const options = ["--noEmit", "--strict", "--skipLibCheck", "false", "--target", "es2022", "--lib", "es2022,dom", "--types", ""];
  for (const [module, resolution] of [["esnext", "bundler"], ["nodenext", "nodenext"]]) {
    await run(process.execPath, [tsc, ...options, "--module", module, "--moduleResolution", resolution, "stranger.ts", "readme.ts", "readme_of_package.ts"], { cwd: folder }).catch((error) => assert.fail(`${resolution}: ${error.stdout}${error.stderr}`));
  }
});

/** A project of a page that runs a program, and says in its title what came of it. */
async function writePage() {
  await mkdir(join(folder, "public"), { recursive: true });
  await copyFile(add, join(folder, "public/add.pte"));
  await writeFile(join(folder, "index.html"), '<!doctype html><title>stranger</title><script type="module" src="./main.js"></script>');
  await writeFile(join(folder, "main.js"), `
    import { loadProgram, PteryxError } from "pteryx";
    try {
      const program = await loadProgram("./add.pte", { device: "cpu", cache: false });
      const { output0 } = await program.run("forward", [new Float32Array(231).fill(1), new Float32Array(231).fill(2)]);
      await program.dispose();
      document.title = "sum " + output0.data[230];
    } catch (error) {
      document.title = "failed " + (error instanceof PteryxError) + " " + error.message;
    }
  `);
}
async function titleOf(address) {
  const browser = await launchBrowser();
  try {
    const page = await browser.open(address);
    await page.waitForFunction(() => /^(sum|failed)/.test(document.title), undefined, { timeout: 60_000 });
    return await page.title();
  } finally {
    await browser.close();
  }
}

test("a page that Vite's development server serves runs a program", async () => {
  await writePage();
  const server = await createServer({ root: folder, logLevel: "error", server: { port: 0, host: "127.0.0.1" } });
  try {
    await server.listen();
    assert.equal(await titleOf(server.resolvedUrls.local[0]), "sum 3");
  } finally {
    await server.close();
  }
});

test("a project that Vite builds runs a program", async () => {
  await writePage();
  await build({ root: folder, base: "./", logLevel: "error", build: { outDir: "built", target: "es2022" } });
  const built = await readdir(join(folder, "built/assets"));
  assert.ok(built.some((name) => name.endsWith(".wasm")), `no module among ${built}`);
  assert.ok(built.some((name) => /^pteryx_convert.*\.wasm$/.test(name)), `no converter among ${built}`);
  const server = await startServer({ root: join(folder, "built") });
  try {
    assert.equal(await titleOf(`${server.origin}/index.html`), "sum 3");
  } finally {
    await server.close();
  }
});

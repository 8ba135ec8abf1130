// node bench/web.mjs MODEL.pte: measures the npm package of web/dist with a language model, in Node and in Chromium.
//   --gguf MODEL.gguf --wllama FOLDER   the same model with wllama, beside it: FOLDER has node_modules/@wllama/wllama
//   --tokens N    of each text (64)     --device cpu,gpu    in Chromium (cpu)     --repeat N    the best of so many (3)
// Figures mean something on a machine that does nothing else. SPDX-License-Identifier: BSD-3-Clause
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("../", import.meta.url));
const { launchBrowser } = await import("../web/tests/support/browser.mjs");
const { startServer } = await import("../web/tests/support/server.mjs");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    gguf: { type: "string" }, wllama: { type: "string" }, device: { type: "string", default: "cpu" },
    tokens: { type: "string", default: "64" }, repeat: { type: "string", default: "3" },
  },
});
if (positionals.length !== 1) {
  console.error("usage: node bench/web.mjs MODEL.pte [--gguf MODEL.gguf --wllama FOLDER] [--tokens N] [--device cpu,gpu] [--repeat N]");
  process.exit(1);
}
const [path] = positionals;
const tokens = Number(values.tokens);
const repeat = Number(values.repeat);
const prompt = "The history of the steam engine begins";

const columns = ["what", "load to first token", "prompt", "decode", "script", "heap"];
const report = (row) => console.log(row.join(" | "));
const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;
const mebibytes = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;

/** Loads, generates `repeat` times, and gives the first load's time to the first token and the best of the rest. */
async function measure({ load, name, options, tokens, repeat, prompt }) {
  const began = performance.now();
  const model = await load(name, options);
  let first = 0;
  const results = [];
  for (let i = 0; i < repeat; ++i) {
    // Each text has a prompt of its own, which is read as a whole.
    const generation = model.generate(i === 0 ? prompt : `${i}. ${prompt}`, { maxTokens: tokens, ignoreEnd: true, temperature: 0 });
    for await (const _piece of generation) first ||= performance.now() - began;
    results.push(await generation.result);
  }
  const { heapBytes, kind } = await model.device();
  const { threads } = model.info;
  await model.dispose();
  const best = (rate) => Math.max(...results.map(rate));
  return {
    first, heapBytes, kind, threads,
    promptRate: best((r) => (1000 * (r.promptTokens - r.cachedTokens)) / r.promptMs),
    rate: best((r) => (1000 * (r.newTokens - 1)) / r.decodeMs),
    scriptMs: Math.min(...results.map((r) => r.hostMsPerToken)),
    text: results[0].text,
  };
}
function reportOurs(where, m) {
  const name = m.kind === "gpu" ? "GPU" : `CPU, ${m.threads} thread${m.threads === 1 ? "" : "s"}`;
  // On the CPU the module computes in the script's time.
  const script = m.kind === "gpu" ? `${m.scriptMs.toFixed(2)} ms/token` : "-";
  report([`${where}: pteryx, ${name}`, seconds(m.first), `${m.promptRate.toFixed(1)} tokens/s`, `${m.rate.toFixed(1)} tokens/s`, script, mebibytes(m.heapBytes)]);
}

async function inNode() {
  const { loadModel } = await import(pathToFileURL(resolve(root, "web/dist/node.js")).href);
  for (const threads of [1, 2])
    reportOurs("Node", await measure({ load: loadModel, name: path, options: { device: "cpu", threads }, tokens, repeat, prompt }));
}

async function inChromium(server, browser) {
  const at = `${server.origin}/web/tests/support/blank.html`;
  const run = async (options) => {
    const page = await browser.open(at);
    try {
      return await page.evaluate(async (call) => {
        const { loadModel } = await import("/web/dist/index.js");
        const { default: measureHere } = await import("/measure.js");
        return measureHere({ ...call, load: loadModel });
      }, { name: "/model.pte", options, tokens, repeat, prompt });
    } finally {
      await page.close();
    }
  };
  for (const device of values.device.split(",")) {
    for (const threads of device === "cpu" ? [1, 2] : [1]) {
      await run({ device, threads }); // leaves the model in the cache
      reportOurs("Chromium", await run({ device, threads }));
    }
  }
}

/** wllama in the same browser; its model is a Blob, which is what its cache gives it. */
async function withWllama(server, browser) {
  for (const threads of [1, 2]) {
    const page = await browser.open(`${server.origin}/wllama.html`);
    try {
      const m = await page.evaluate(async ([call, count]) => {
        const { Wllama } = await import("/wllama/esm/index.js");
        const blob = await (await fetch("/model.gguf")).blob();
        const began = performance.now();
        const wllama = new Wllama({ default: "/wllama/esm/wasm/wllama.wasm" });
        await wllama.loadModel([blob], { n_threads: count, n_ctx: 1024, n_gpu_layers: 0 });
        let first = 0;
        let rate = 0;
        for (let i = 0; i < call.repeat; ++i) {
          let firstOfText = 0;
          let pieces = 0;
          const stream = await wllama.createCompletion({ prompt: i === 0 ? call.prompt : `${i}. ${call.prompt}`, max_tokens: call.tokens, temperature: 0, ignore_eos: true, stream: true });
          for await (const _chunk of stream) {
            first ||= performance.now() - began;
            firstOfText ||= performance.now();
            ++pieces;
          }
          rate = Math.max(rate, (1000 * (pieces - 1)) / (performance.now() - firstOfText));
        }
        await wllama.exit();
        return { first, rate };
      }, [{ tokens, repeat, prompt }, threads]);
      report([`Chromium: wllama, CPU, ${threads} thread${threads === 1 ? "" : "s"}`, seconds(m.first), "-", `${m.rate.toFixed(1)} tokens/s`, "-", "-"]);
    } finally {
      await page.close();
    }
  }
}

console.log(columns.join(" | "));
await inNode();
const isolation = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp", "Cross-Origin-Resource-Policy": "same-origin" };
const server = await startServer({ root, headers: isolation });
server.file("/model.pte", { body: await readFile(path) });
server.file("/measure.js", { body: Buffer.from(`export default ${measure}`), type: "text/javascript" });
const browser = await launchBrowser({ webgpu: values.device.includes("gpu") });
try {
  await inChromium(server, browser);
  if (values.gguf && values.wllama) {
    const folder = resolve(values.wllama, "node_modules/@wllama/wllama");
    server.file("/model.gguf", { body: await readFile(values.gguf) });
    server.file("/wllama.html", { body: Buffer.from("<!doctype html><title>wllama</title>"), type: "text/html" });
    server.file("/wllama/esm/index.js", { body: await readFile(`${folder}/esm/index.js`), type: "text/javascript" });
    server.file("/wllama/esm/wasm/wllama.wasm", { body: await readFile(`${folder}/esm/wasm/wllama.wasm`), type: "application/wasm" });
    await withWllama(server, browser);
  }
} finally {
  await browser.close();
  await server.close();
}

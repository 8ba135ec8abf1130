// node bench/web.mjs MODEL.pte: measures the npm package of web/dist with a language model, in Node and in Chromium.
//   --gguf MODEL.gguf --wllama FOLDER   the same model with wllama, beside it: FOLDER has node_modules/@wllama/wllama
//   --in node,chromium   where (both)   --device cpu,gpu   on what (cpu; wllama is on the CPU always)
//   --tokens N   of each text (64)      --repeat N   the best of so many (3)
//   --prompt N   N token ids in place of a text, and the only way for a model without a tokenizer
// Times are from the import of the package on, whose files and model a server on this machine has: on a first visit nothing is cached, after a
// reload everything is. Rates are of the latter. Figures mean something on a machine that does nothing else. SPDX-License-Identifier: BSD-3-Clause
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("../", import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    gguf: { type: "string" }, wllama: { type: "string" }, in: { type: "string", default: "node,chromium" },
    device: { type: "string", default: "cpu" }, prompt: { type: "string", default: "0" },
    tokens: { type: "string", default: "64" }, repeat: { type: "string", default: "3" },
  },
});
if (positionals.length !== 1) {
  console.error("usage: node bench/web.mjs MODEL.pte [--gguf MODEL.gguf --wllama FOLDER] [--in node,chromium] [--device cpu,gpu] [--tokens N]");
  console.error("                          [--repeat N] [--prompt N]");
  process.exit(1);
}
const [path] = positionals;
const tokens = Number(values.tokens);
const repeat = Number(values.repeat);
const prompt = Number(values.prompt) || "The history of the steam engine begins";
/** What is measured: device and threads. */
const rows = values.device.split(",").flatMap((device) => (device === "cpu" ? [1, 2] : [1]).map((threads) => ({ device, threads })));

const kTimes = ["until loaded", "until the first token"];
const kRates = ["prompt", "decode", "script", "heap"];
const report = (row) => console.log(row.join(" | "));
const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;
const mebibytes = (bytes) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
const rate = (perSecond) => (perSecond ? `${perSecond.toFixed(1)} tokens/s` : "-");
const times = (m) => [seconds(m.loadMs), seconds(m.firstMs)];
const nameOf = (m) => `pteryx, ${m.kind === "gpu" ? "GPU" : threadsOf(m.threads)}`;
const threadsOf = (count) => `CPU, ${count} thread${count === 1 ? "" : "s"}`;

/**
 * Imports the package, loads, and generates `repeat` times; then waits for `atEnd`. Gives the time of the load, that to the first token, both from
 * the import on, and the best of the rest.
 */
async function measure({ load, name, options, tokens, repeat, prompt, atEnd = async () => undefined }) {
  const began = performance.now();
  const model = await load(name, options);
  const loadMs = performance.now() - began;
  let firstMs = 0;
  const results = [];
  for (let i = 0; i < repeat; ++i) {
    // Each text has a prompt of its own, which is read as a whole.
    const text = () => (i === 0 ? prompt : `${i}. ${prompt}`);
    const ids = () => Array.from({ length: prompt }, (_, at) => (at === 0 ? i : at));
    const generation = model.generate(typeof prompt === "number" ? ids() : text(), { maxTokens: tokens, ignoreEnd: true, temperature: 0 });
    for await (const _piece of generation) firstMs ||= performance.now() - began;
    results.push(await generation.result);
  }
  const { heapBytes, kind } = await model.device();
  const { threads } = model.info;
  await atEnd();
  await model.dispose();
  const best = (of) => Math.max(...results.map(of));
  return {
    loadMs, firstMs, heapBytes, kind, threads,
    promptRate: best((r) => (1000 * (r.promptTokens - r.cachedTokens)) / r.promptMs),
    rate: best((r) => (1000 * (r.newTokens - 1)) / r.decodeMs),
    scriptMs: Math.min(...results.map((r) => r.hostMsPerToken)),
  };
}
/** On the CPU the module computes in the script's time. */
const rates = (m) => [rate(m.promptRate), rate(m.rate), m.kind === "gpu" ? `${m.scriptMs.toFixed(2)} ms/token` : "-", mebibytes(m.heapBytes)];

async function inNode() {
  report(["Node", ...kTimes, ...kRates]);
  const load = async (...call) => (await import(pathToFileURL(resolve(root, "web/dist/node.js")).href)).loadModel(...call);
  for (const options of rows) {
    const m = await measure({ load, name: path, options, tokens, repeat, prompt });
    report([nameOf(m), ...times(m), ...rates(m)]);
  }
}

/** Runs `task` in a page that was never visited, and again after a reload; `look` adds what the page itself cannot tell. */
async function visitTwice(server, browser, task, call, look = async () => ({})) {
  const { forget } = await import("../web/tests/support/page.mjs");
  await forget(browser, server.origin);
  const page = await browser.open(`${server.origin}/web/tests/support/blank.html`);
  const visit = async (count) => ({ ...(await page.evaluate(task, { ...call, tokens, prompt, repeat: count })), ...(await look(page)) });
  try {
    const first = await visit(1);
    await page.reload();
    return { first, reloaded: await visit(repeat) };
  } finally {
    await page.close();
  }
}
const reportVisits = (name, { first, reloaded }) => report([name, ...times(first), ...times(reloaded), ...rates(reloaded)]);

async function inChromium(server, browser) {
  const ours = async (call) => {
    const { default: measureHere } = await import("/measure.js");
    const engine = () => import("/web/dist/index.js");
    const isKept = async () => (await (await engine()).cache.list()).every((entry) => entry.complete);
    return measureHere({
      ...call,
      load: async (...what) => (await engine()).loadModel(...what),
      atEnd: async () => {
        while (!(await isKept())) await new Promise((done) => setTimeout(done, 20));
      },
    });
  };
  for (const options of rows) {
    const visits = await visitTwice(server, browser, ours, { name: "/model.pte", options });
    reportVisits(nameOf(visits.first), visits);
  }
}

/** wllama in the same browser, with its own cache. */
async function withWllama(server, browser) {
  const theirs = async (call) => {
    const began = performance.now();
    const { Wllama } = await import("/wllama/esm/index.js");
    const wllama = new Wllama({ default: "/wllama/esm/wasm/wllama.wasm" }, { suppressNativeLog: true });
    await wllama.loadModelFromUrl(new URL("/model.gguf", location.href).href, { n_threads: call.threads, n_ctx: 1024, n_gpu_layers: 0 });
    const loadMs = performance.now() - began;
    let [firstMs, best, promptRate] = [0, 0, 0];
    for (let i = 0; i < call.repeat; ++i) {
      let [firstOfText, pieces] = [0, 0];
      const stream = await wllama.createCompletion({
        prompt: i === 0 ? call.prompt : `${i}. ${call.prompt}`, max_tokens: call.tokens, temperature: 0, ignore_eos: true, stream: true,
      });
      for await (const { timings } of stream) {
        firstMs ||= performance.now() - began;
        firstOfText ||= performance.now();
        ++pieces;
        promptRate = Math.max(promptRate, timings?.prompt_per_second ?? 0);
      }
      best = Math.max(best, (1000 * (pieces - 1)) / (performance.now() - firstOfText));
    }
    return { loadMs, firstMs, rate: best, promptRate };
  };
  const heap = async (page) => ({ heapBytes: await page.workers()[0].evaluate("heapBytes()") });
  for (const threads of [1, 2]) reportVisits(`wllama, ${threadsOf(threads)}`, await visitTwice(server, browser, theirs, { threads }, heap));
}

/** Pteryx, and wllama where it was named. */
async function inBrowser() {
  const { launchBrowser } = await import("../web/tests/support/browser.mjs");
  const { startServer } = await import("../web/tests/support/server.mjs");
  report(["Chromium", ...kTimes.map((what) => `first visit: ${what}`), ...kTimes.map((what) => `reload: ${what}`), ...kRates]);
  const headers = {
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp", "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "max-age=3600",
  };
  const server = await startServer({ root, headers });
  const model = async (file) => ({ body: await readFile(file), headers: { "Cache-Control": "no-cache" } }); // each library has a cache for them
  server.file("/model.pte", await model(path));
  server.file("/measure.js", { body: Buffer.from(`export default ${measure}`), type: "text/javascript" });
  const browser = await launchBrowser({ webgpu: values.device.includes("gpu") });
  try {
    await inChromium(server, browser);
    if (values.gguf && values.wllama) {
      const folder = resolve(values.wllama, "node_modules/@wllama/wllama");
      server.file("/model.gguf", await model(values.gguf));
      // Its worker is made to tell how large its heap is, which the library does not.
      const script = await readFile(`${folder}/esm/index.js`, "utf8");
      const telling = script.replace("let Module = null;", "$& globalThis.heapBytes = () => Module.wasmMemory.buffer.byteLength;");
      server.file("/wllama/esm/index.js", { body: Buffer.from(telling), type: "text/javascript" });
      server.file("/wllama/esm/wasm/wllama.wasm", { body: await readFile(`${folder}/esm/wasm/wllama.wasm`), type: "application/wasm" });
      await withWllama(server, browser);
    }
  } finally {
    await browser.close();
    await server.close();
  }
}

const places = values.in.split(",");
if (places.includes("node")) await inNode();
if (places.includes("chromium")) await inBrowser();

// The demo's model, SmolLM2 135M, in Chromium: an answer in the page, and the tokens that the command line tool chooses at f32 precision, on the
// CPU and on the GPU, of which the software takes seconds for each. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, rename, stat } from "node:fs/promises";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { launchBrowser } from "./support/browser.mjs";
import { chat, screenshot, startPage } from "./support/page.mjs";
import { startServer } from "./support/server.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const tool = `${root}build/pteryx`;
const program = `${root}build-web/demo/smollm2.pte`;
const question = "Why is the sky blue? Answer in one sentence.";
const run = async (file, ...args) => (await promisify(execFile)(file, args, { maxBuffer: 1 << 26 })).stdout;

/** What the tool says to a prompt, greedily; `how`: more of its options. */
async function native(prompt, tokens, precision, ...how) {
  return JSON.parse(await run(tool, "generate", program, "-p", prompt, "-n", String(tokens), "--device", "cpu", "--precision", precision, "--temperature", "0", "--json", ...how));
}

/** A first visit fetches the file once, whatever the order in which its weights are asked for. */
function fetchedOnce(server) {
  const requests = server.requests("/smollm2.pte");
  const sent = requests.reduce((sum, request) => sum + request.sent, 0);
  assert.ok(requests.length <= 3 && sent <= 1.01 * body.length, `${requests.length} requests of ${sent} bytes, of a file of ${body.length}`);
}

let body;
before(async () => {
  const time = (file) => stat(file).then((s) => s.mtimeMs, () => 0);
  if ((await time(program)) < (await time(tool))) {
    const model = (await run(`${root}tools/models/fetch`)).trim();
    await mkdir(`${root}build-web/demo`, { recursive: true });
    await run(tool, "convert", model, "-o", `${program}.new`);
    await rename(`${program}.new`, program);
  }
  body = await readFile(program);
});

test("the page answers on the CPU as the tool does", async (t) => {
  const site = await startPage();
  t.after(() => site.close());
  site.server.file("/smollm2.pte", { body });
  const page = await site.open();
  await chat.load(page, "smollm2.pte");
  await chat.ready(page);
  await chat.settings(page, { Temperature: 0, "Repetition penalty": 1, "Maximum answer length": 48 });
  await chat.ask(page, question);
  const answer = await chat.answer(page);
  assert.match(answer, /sky|blue|light|scatter/i);
  assert.equal(answer.trim(), (await native(question, 48, "f16", "--chat")).text.trim());
  await screenshot(page, "chat-smollm2");
  assert.deepEqual(page.problems, []);
  fetchedOnce(site.server);
});

// A chat on the CPU; on the GPU, for its time, a few tokens of a short text.
for (const [device, prompt, maxTokens, how] of [["cpu", question, 24, "--chat"], ["gpu", "The capital of France is", 4, "--ignore-end"]]) {
  test(`the tokens on the ${device} are those of the tool at f32`, async (t) => {
    const server = await startServer({ root });
    t.after(() => server.close());
    server.file("/smollm2.pte", { body });
    const browser = await launchBrowser({ webgpu: device === "gpu" });
    t.after(() => browser.close());
    const page = await browser.open(`${server.origin}/web/tests/support/blank.html`);
    const { ids, kind } = await page.evaluate(async ([on, text, most]) => {
      const { loadModel } = await import("/web/dist/index.js");
      const model = await loadModel("/smollm2.pte", { device: on, precision: "f32" });
      const drawn = [];
      const pieces = on === "cpu" ? model.chat([{ role: "user", content: text }], { maxTokens: most }) : model.generate(text, { maxTokens: most, ignoreEnd: true });
      for await (const piece of pieces) drawn.push(piece.token);
      return { ids: drawn, kind: model.info.device.kind };
    }, [device, prompt, maxTokens]);
    assert.equal(kind, device);
    fetchedOnce(server);
    assert.deepEqual(ids, (await native(prompt, maxTokens, "f32", how)).ids);
  });
}

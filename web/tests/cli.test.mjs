// npx pteryx, as a process of its own. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { makeGguf } from "./support/gguf.mjs";

const lavapipe = fileURLToPath(new URL("../../.deps/lavapipe/lvp_icd.json", import.meta.url));
process.env.VK_ICD_FILENAMES ??= lavapipe;
const { loadModel } = await import("../dist/node.js");
const cli = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
const pte = fileURLToPath(new URL("../../tests/fixtures/web/chat.pte", import.meta.url));
let folder, gguf;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "pteryx-cli-"));
  gguf = join(folder, "small.gguf");
  await writeFile(gguf, makeGguf());
});
after(() => rm(folder, { recursive: true, force: true }));

/** Runs the tool to its end. `onOutput` sees the process and what it has written so far. */
function pteryx(args, { input = "", onOutput, env = {} } = {}) {
  const { PTERYX_CACHE, ...inherited } = process.env;
  const child = spawn(process.execPath, [cli, ...args], { cwd: folder, env: { ...inherited, XDG_CACHE_HOME: join(folder, "cache"), ...env } });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
    onOutput?.(child, stdout);
  });
  child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
  child.stdin.on("error", () => {}).end(input);
  return new Promise((resolve) => child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr })));
}
const kCpu = "pteryx: running on the CPU, as --device says\n";
const kGpu = { VK_ICD_FILENAMES: lavapipe };
/** What the tool itself says: the WebGPU library and its driver may have something to say, too. */
const said = ({ stderr }) => stderr.split("\n").filter((text) => text.startsWith("pteryx: "));
const answer = async (model, messages, options) => {
  const { text } = await model.chat(messages, options).result;
  return { role: "assistant", content: text };
};

test("--help and --version", async () => {
  const help = await pteryx(["--help"]);
  assert.deepEqual([help.code, help.stderr], [0, ""]);
  for (const option of ["--prompt", "--system", "--max-tokens", "--temperature", "--seed", "--device", "--help", "--version"]) assert.ok(help.stdout.includes(option), option);
  assert.deepEqual(await pteryx(["chat", "-h"]), help);
  const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
  assert.deepEqual(await pteryx(["--version"]), { code: 0, signal: null, stdout: `${version}\n`, stderr: "" });
});

test("a wrong command line is one line on stderr, and exit code 2", async () => {
  const cases = [
    [[], /expected a command: chat/],
    [["talk"], /no command 'talk': expected chat/],
    [["chat"], /expected a model/],
    [["chat", "a", "b"], /expected one model, got 'b', too/],
    [["chat", "a", "--loud"], /--loud/],
    [["chat", "a", "--seed"], /--seed/],
    [["chat", "a", "--device", "tpu"], /--device: expected auto, gpu or cpu, got 'tpu'/],
    [["chat", "a", "--max-tokens", "0"], /--max-tokens: expected a whole number from 1, got '0'/],
    [["chat", "a", "--temperature", "hot"], /--temperature: expected a number from 0 to 100, got 'hot'/],
    [["chat", "a", "--temperature", "101"], /--temperature: expected a number from 0 to 100, got '101'/],
    [["chat", "a", "--seed", "1.5"], /--seed: expected a whole number from 0, got '1\.5'/],
    [["chat", "a", "-p", " "], /the message is empty/],
  ];
  const limit = { args: ["chat", "a"], pattern: /PTERYX_CACHE_LIMIT: expected a number of MiB, got 'much'/, env: { PTERYX_CACHE_LIMIT: "much" } };
  for (const { args, pattern, env } of [...cases.map(([args, pattern]) => ({ args, pattern })), limit]) {
    const { code, stdout, stderr } = await pteryx(args, { env });
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr, /^pteryx: [^\n]+; see pteryx --help\n$/);
    assert.match(stderr, pattern);
  }
});

test("a model that cannot be used is one line on stderr, and exit code 1", async () => {
  const page = join(folder, "page.gguf");
  const cut = join(folder, "cut.gguf");
  await writeFile(page, "<!doctype html><title>404</title>");
  await writeFile(cut, makeGguf().subarray(0, 3000));
  for (const [model, pattern] of [["missing.gguf", /missing\.gguf: no such file/], [page, /page\.gguf: expected a model .*, got a web page/], [cut, /GGUF: .*; while reading .*cut\.gguf/], [folder, /pteryx-cli-/]]) {
    const { code, stdout, stderr } = await pteryx(["chat", model, "-p", "Hello", "--device", "cpu"]);
    assert.deepEqual([code, stdout], [1, ""], stderr);
    assert.match(stderr, /^pteryx: [^\n]+\n$/);
    assert.match(stderr, pattern);
  }
});

test("--prompt is answered once, with the options", async () => {
  const model = await loadModel(pte, { device: "cpu" });
  const system = { role: "system", content: "Be brief." };
  const user = { role: "user", content: "Hello" };
  for (const [args, messages, options] of [
    [["-p", "Hello", "--max-tokens", "12"], [user], { maxTokens: 12 }],
    [["--prompt=Hello", "--system", "Be brief.", "--max-tokens", "5", "--temperature", "0.8", "--seed", "7"], [system, user], { maxTokens: 5, temperature: 0.8, seed: 7 }],
  ]) {
    const { content } = await answer(model, messages, options);
    assert.deepEqual(await pteryx(["chat", pte, "--device", "cpu", ...args]), { code: 0, signal: null, stdout: `${content}\n`, stderr: kCpu });
  }
  await model.dispose();
});

test("each line of a pipe is a message of one conversation", async () => {
  const model = await loadModel(pte, { device: "cpu" });
  const messages = [{ role: "user", content: "Hello" }];
  messages.push(await answer(model, messages, { maxTokens: 6 }));
  messages.push({ role: "user", content: "Grüße?" });
  const last = await answer(model, messages, { maxTokens: 6 });
  await model.dispose();
  const { code, stdout } = await pteryx(["chat", pte, "--device", "cpu", "--max-tokens", "6"], { input: "Hello\n\nGrüße?" });
  assert.deepEqual([code, stdout], [0, `${messages[1].content}\n${last.content}\n`]);
  assert.deepEqual(await pteryx(["chat", pte, "--device", "cpu"]), { code: 0, signal: null, stdout: "", stderr: kCpu });
});

test("on a GPU it says which, and answers as the package does there", async () => {
  const model = await loadModel(pte, { device: "gpu" });
  const { kind, name } = model.info.device;
  assert.equal(kind, "gpu");
  const messages = [{ role: "user", content: "Hello" }];
  messages.push(await answer(model, messages, { maxTokens: 8 }));
  messages.push({ role: "user", content: "Grüße?" });
  const last = await answer(model, messages, { maxTokens: 8 });
  await model.dispose();
  const once = await pteryx(["chat", pte, "--device", "gpu", "-p", "Hello", "--max-tokens", "8"], { env: kGpu });
  assert.deepEqual([once.code, once.stdout], [0, `${messages[1].content}\n`], once.stderr);
  assert.deepEqual(said(once), [`pteryx: ${name} is a software GPU, which is slow.`]);
  const piped = await pteryx(["chat", pte, "--device", "gpu", "--max-tokens", "8"], { input: "Hello\nGrüße?\n", env: kGpu });
  assert.deepEqual([piped.code, piped.stdout], [0, `${messages[1].content}\n${last.content}\n`], piped.stderr);
});

test("a GGUF file is converted on its way to the GPU, too", async () => {
  const run = await pteryx(["chat", "small.gguf", "-p", "Hello", "--max-tokens", "4", "--device", "gpu"], { env: { ...kGpu, PTERYX_CACHE: join(folder, "gpu") } });
  assert.equal(run.code, 0, run.stderr);
  assert.match(said(run).join("\n"), /^pteryx: converting small\.gguf; .*\npteryx: .* is a software GPU/);
  assert.ok(run.stdout.length > 1);
});

test("a GGUF file is converted once, into the user's cache", async () => {
  const args = ["chat", "small.gguf", "-p", "Hello", "--max-tokens", "4", "--device", "cpu"];
  const first = await pteryx(args);
  assert.equal(first.code, 0, first.stderr);
  assert.equal(first.stderr, `pteryx: converting small.gguf; the result is kept in ${join(folder, "cache", "pteryx")}\n${kCpu}`);
  assert.deepEqual((await readdir(join(folder, "cache", "pteryx"))).map((name) => name.replace(/^\w+/, "KEY")).sort(), ["KEY.json", "KEY.pte"]);
  assert.deepEqual(await pteryx(args), { ...first, stderr: kCpu });
  const own = await pteryx(args, { env: { PTERYX_CACHE: join(folder, "own") } });
  assert.equal(own.stdout, first.stdout);
  assert.equal((await readdir(join(folder, "own"))).length, 2);
  // Beyond its limit the cache holds what was converted last.
  await writeFile(join(folder, "other.gguf"), makeGguf({ seed: 2 }));
  const other = await pteryx(["chat", "other.gguf", ...args.slice(2)], { env: { PTERYX_CACHE: join(folder, "own"), PTERYX_CACHE_LIMIT: "0" } });
  assert.equal(other.code, 0, other.stderr);
  const [kept, ...more] = (await readdir(join(folder, "own"))).filter((name) => name.endsWith(".json"));
  assert.deepEqual(more, []);
  assert.match(await readFile(join(folder, "own", kept), "utf8"), /other\.gguf/);
});

test("without a GPU it says why the CPU is used", async () => {
  const { code, stderr } = await pteryx(["chat", pte, "-p", "Hello", "--max-tokens", "1"], { env: { VK_ICD_FILENAMES: "/nonexistent", VK_DRIVER_FILES: "/nonexistent" } });
  assert.equal(code, 0, stderr);
  const [line, ...more] = said({ stderr });
  assert.match(line, /^pteryx: The CPU is used, .*(WebGPU|webgpu)/);
  assert.deepEqual(more, []);
});

test("Ctrl-C ends an answer that nothing follows", async () => {
  let sent = false;
  const { code, stderr, stdout } = await pteryx(["chat", pte, "-p", "Hello", "--device", "cpu", "--temperature", "2", "--seed", "3"], {
    onOutput: (child, text) => {
      if (sent || text.length < 3) return;
      sent = true;
      child.kill("SIGINT");
    },
  });
  assert.equal(code, 130, stderr);
  assert.ok(stdout.endsWith("\n"));
  assert.equal(stderr, kCpu);
});

test("at a terminal, Ctrl-C stops an answer and then the program", async () => {
  const steps = [["> ", "Hello\r"], ["\n ", "\x03"], ["> ", "Once more\r"], ["\n ", "\x03"], ["> ", "\x03"]];
  const child = spawn("python3", [fileURLToPath(new URL("support/terminal.py", import.meta.url)), JSON.stringify(steps), process.execPath, cli, "chat", pte, "--device", "cpu"]);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
  const code = await new Promise((resolve) => child.on("close", resolve));
  assert.equal(code, 0, output);
  assert.match(output, /chat\.pte on CPU, context 1024 tokens; Ctrl-D quits/);
  assert.equal(output.split("> ").length, 4, output);
});

test("whoever has read enough ends it quietly", async () => {
  const { stderr } = await pteryx(["chat", pte, "-p", "Hello", "--device", "cpu", "--temperature", "2", "--seed", "3", "--max-tokens", "400"], {
    onOutput: (child) => child.stdout.destroy(),
  });
  assert.equal(stderr, kCpu);
});

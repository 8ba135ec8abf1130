// Inspecting and running programs in the page, with the package, on the CPU and on Chromium's software GPU. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { drop, failure, fixture, screenshot, startPage } from "./support/page.mjs";
import { floatsOf, npy, png } from "./support/pictures.mjs";

let site;
let cases;
before(async () => {
  site = await startPage({ webgpu: true });
  cases = new Map();
  for (const folder of ["ops", "values"]) {
    for (const entry of JSON.parse(await fixture(`${folder}/manifest.json`)).cases) cases.set(`${folder}/${entry.name}`, entry);
  }
});
after(() => site?.close());

const program = async (path) => ({ name: path.slice(path.lastIndexOf("/") + 1), body: await fixture(path) });
const bytesOf = async (folder, { file, offset, shape }) => (await fixture(`${folder}/${file}`)).subarray(offset, offset + 4 * shape.reduce((n, d) => n * d, 1));

/** A drawing of the canvas, to see whether it changed. */
const drawing = (page) => page.locator(".graph canvas").evaluate(async (canvas) => {
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let hash = 0;
  const colors = new Set();
  for (let i = 0; i < data.length; i += 4) {
    const color = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
    if (data[i + 3] > 0) colors.add(color);
    hash = (Math.imul(hash, 31) + color) | 0;
  }
  return { hash, colors: colors.size };
});

test("inspect by address: the tables alone are read, nothing is kept, and the device is named", async () => {
  const body = Buffer.concat([await fixture("ops/net_cnn.pte"), Buffer.alloc(12 << 20)]);
  site.server.file("/large.pte", { body, bytesPerSecond: 4 << 20 });
  const page = await openTab("inspect");
  await page.getByLabel("To run on").selectOption("cpu");
  await page.getByLabel("Address of a .pte file").fill("large.pte");
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  const report = page.getByRole("article", { name: "Report on large.pte" });
  await report.waitFor();
  assert.match(await report.innerText(), /Planned for the CPU\./);
  const sent = site.server.requests("/large.pte").reduce((sum, request) => sum + request.sent, 0);
  assert.ok(sent < body.length / 2, `${sent} bytes`);
  assert.deepEqual(await page.evaluate(async () => (await (await import("./pteryx/index.js")).cache.list()).length), 0);
  site.server.remove("/large.pte");
  await page.close();
});

async function openTab(name) {
  const page = await site.open(`/#${name}`);
  await page.locator(`#panel-${name} h2`).waitFor();
  return page;
}
const rows = (page, name) => page.locator(`[role=region][aria-label="${name}"] tbody tr`).allInnerTexts().then((list) => list.map((text) => text.replace(/\s+/g, " ").trim()));

for (const device of ["gpu", "cpu"]) {
  test(`inspect says what a dropped program is made of, and where its operators run on the ${device}`, async () => {
    const page = await openTab("inspect");
    await page.getByLabel("To run on").selectOption(device);
    await drop(page, [await program("ops/net_cnn.pte")]);
    const report = page.getByRole("article", { name: "Report on net_cnn.pte" });
    await report.waitFor();
    assert.match(await report.innerText(), /'forward' runs here/);
    assert.deepEqual((await rows(page, "Inputs and outputs")).map((row) => row.replace(/^(in|out) \S+/, "$1")), ["in f32 [1, 3, 32, 32]", "out f32 [1, 10]"]);
    const operators = await rows(page, "Operators");
    assert.ok(operators.some((row) => new RegExp(`convolution\\S* \\d+ ${device.toUpperCase()}$`).test(row)), operators.join("\n"));
    assert.ok(operators.every((row) => /^\S+ \d+ (GPU|CPU|free)$/.test(row)), operators.join("\n"));
    const memory = await rows(page, "Memory");
    assert.match(memory[0], device === "gpu" ? /^Weights and constants \d+(\.\d)? kB/ : /^In the page's memory \d+ kB/);
    assert.match(await report.innerText(), /Memory: \d+(\.\d)? kB\./);
    assert.deepEqual(page.problems, []);
    await page.close();
  });
}

test("the graph is drawn, and can be zoomed, moved, searched and read as a table", async () => {
  const page = await openTab("inspect");
  await drop(page, [await program("ops/net_vit.pte")]);
  const canvas = page.locator(".graph canvas");
  await canvas.waitFor();
  await canvas.scrollIntoViewIfNeeded();
  const first = await drawing(page);
  assert.ok(first.colors > 8, `${first.colors} colours`);
  const changed = async (what, act) => {
    const before = await drawing(page);
    await act();
    const now = await drawing(page);
    assert.notEqual(now.hash, before.hash, what);
    return now;
  };
  await changed("the button zooms in", () => page.getByRole("button", { name: "Zoom in" }).click());
  await changed("the button zooms out", () => page.getByRole("button", { name: "Zoom out" }).click());
  await changed("the wheel zooms", async () => {
    await canvas.focus();
    await canvas.hover();
    await page.mouse.wheel(0, -300);
  });
  await changed("dragging moves it", async () => {
    const box = await canvas.boundingBox();
    await page.mouse.move(box.x + 200, box.y + 200);
    await page.mouse.down();
    await page.mouse.move(box.x + 260, box.y + 230, { steps: 4 });
    await page.mouse.up();
  });
  await changed("an arrow key moves it", () => canvas.press("ArrowDown"));
  await canvas.press("n");
  assert.match(await page.locator(".node-details").innerText(), /\S+\s+(GPU|CPU|no work|input)/);
  await page.getByPlaceholder("Find a node").fill("softmax");
  await changed("a node that was found is shown", () => page.getByPlaceholder("Find a node").press("Enter"));
  assert.match(await page.locator(".node-details").innerText(), /softmax/);
  await screenshot(page, "inspect-graph");
  await page.getByText("Nodes as a table").click();
  await page.locator(".graph-panel table tbody tr").nth(10).waitFor();
  await page.close();
});

test("a report leads to the run tab", async () => {
  const page = await openTab("inspect");
  await drop(page, [await program("ops/net_cnn.pte")]);
  await page.locator(".report").waitFor();
  await screenshot(page, "inspect-report");
  await page.getByRole("button", { name: "Run it" }).click();
  await page.locator("#panel-run fieldset.input").waitFor();
  assert.match(page.url(), /#run$/);
  assert.match(await page.locator("#panel-run .bar").innerText(), /^net_cnn\.pte/);
  await page.close();
});

test("a file that is no program is refused in words", async () => {
  const page = await openTab("inspect");
  await drop(page, [{ name: "notes.pte", body: Buffer.from("This is not a program, although its name says so.") }]);
  const { code, text } = await failure(page, "#panel-inspect");
  assert.equal(code, "invalid-program");
  assert.match(text, /notes\.pte/);
  await page.close();
});

/** Runs, downloads the first output, and gives its values. */
async function runAndDownload(page) {
  await page.getByRole("button", { name: /^Run / }).click();
  const button = page.locator(".output").first().getByRole("button", { name: "Download .npy" });
  await button.waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return floatsOf(await readFile(await file.path()));
}
function assertClose(got, want, tolerance) {
  assert.equal(got.length, want.length);
  got.forEach((value, i) => assert.ok(Math.abs(value - want[i]) <= tolerance * (1 + Math.abs(want[i])), `element ${i}: expected ${want[i]}, got ${value}`));
}

test("an image program runs on a picture", async () => {
  const page = await openTab("run");
  const color = (x, y) => [x * 40, y * 60, 255 - x * 30];
  await drop(page, [{ ...(await program("ops/upsample_nearest.pte")) }]);
  await page.locator("fieldset.input").waitFor();
  await page.getByLabel("Values").selectOption("unit");
  await drop(page, [{ name: "picture.png", body: png(7, 5, color), type: "image/png" }]);
  await page.locator("fieldset.input canvas.preview").waitFor();
  const got = await runAndDownload(page);
  const want = [0, 1, 2].flatMap((c) => Array.from({ length: 10 * 14 }, (_, i) => color((i % 14) >> 1, Math.floor(i / 14) >> 1)[c] / 255));
  assertClose(got, want, 1e-6);
  const output = page.locator(".output");
  assert.match(await output.innerText(), /f32 \[1, 3, 10, 14\]/);
  const shown = await output.locator("canvas").evaluate((canvas) => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data].filter((_, i) => i % 4 < 3));
  assert.deepEqual(shown, Array.from({ length: 140 }, (_, i) => color((i % 14) >> 1, Math.floor(i / 14) >> 1)).flat());
  await screenshot(page, "run-picture");
  assert.deepEqual(page.problems, []);
  await page.close();
});

for (const device of ["gpu", "cpu"]) {
  test(`a classifier runs on a .npy file on the ${device}, and labels name its classes`, async () => {
    const run = cases.get("ops/net_cnn").runs[0];
    const page = await openTab("run");
    await page.locator("#panel-run").getByLabel("Run on").selectOption(device);
    await drop(page, [await program("ops/net_cnn.pte"), { name: "x.npy", body: npy(run.inputs[0].shape, await bytesOf("ops", run.inputs[0])) }]);
    await page.getByText("x.npy: f32 [1, 3, 32, 32]").waitFor();
    const want = new Float32Array(new Uint8Array(await bytesOf("ops", run.outputs[0])).buffer);
    assertClose(await runAndDownload(page), want, 1e-3);
    const best = want.indexOf(Math.max(...want));
    assert.match(await page.locator(".ranking li").first().innerText(), new RegExp(`^class ${best}`));
    await drop(page, [{ name: "labels.txt", body: Buffer.from(Array.from({ length: 10 }, (_, i) => `animal ${i}`).join("\n")) }]);
    assert.match(await page.locator(".ranking li").first().innerText(), new RegExp(`^animal ${best}`));
    assert.match(await page.locator("#panel-run .bar").innerText(), device === "gpu" ? /swiftshader · .* of GPU memory/ : /CPU · .* of memory/);
    await screenshot(page, `run-classifier-${device}`);
    await page.close();
  });
}

test("a program with two inputs takes two files, and one with external weights takes them along", async () => {
  const page = await openTab("run");
  const condition = cases.get("values/condition").runs[0];
  const inputs = await Promise.all(condition.inputs.map(async (input, i) => ({ name: `in${i}.npy`, body: npy(input.shape, await bytesOf("values", input)) })));
  await drop(page, [await program("values/condition.pte"), ...inputs]);
  await page.locator("fieldset", { hasText: "in1.npy: f32 [2, 2]" }).waitFor();
  assert.deepEqual(await page.locator("fieldset .input-body").allInnerTexts().then((list) => list.map((text) => /in\d/.exec(text)?.[0])), ["in0", "in1"]);
  assertClose(await runAndDownload(page), new Float32Array(new Uint8Array(await bytesOf("values", condition.outputs[0])).buffer), 1e-5);

  const external = cases.get("ops/external_weights");
  const run = external.runs[0];
  const data = await Promise.all(external.ptd.map((name) => program(`ops/${name}`)));
  await drop(page, [...data, await program("ops/external_weights.pte"), { name: "x.npy", body: npy(run.inputs[0].shape, await bytesOf("ops", run.inputs[0])) }]);
  await page.getByText("x.npy: f32 [3, 64]").waitFor();
  assertClose(await runAndDownload(page), new Float32Array(new Uint8Array(await bytesOf("ops", run.outputs[0])).buffer), 1e-4);
  await page.close();
});

test("inputs that do not fit are named, and nothing runs", async () => {
  const page = await openTab("run");
  await drop(page, [await program("ops/net_cnn.pte"), { name: "small.npy", body: npy([1, 4], Buffer.alloc(16)) }]);
  await page.getByText("small.npy: f32 [1, 4]").waitFor();
  await page.getByRole("button", { name: /^Run / }).click();
  const { code, text } = await failure(page, "#panel-run");
  assert.equal(code, "invalid-argument");
  assert.match(text, /small\.npy has the shape \[1, 4\], \[1, 3, 32, 32\] is expected/);
  await page.close();
});

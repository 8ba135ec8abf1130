// npm run screenshots -- MODEL.pte [FOLDER]: the pictures of the page in docs/images, of a chat with a model, its graph, and an image program.
// Needs web/dist (node web/build.mjs) and Chromium; CHROMIUM names another one. SPDX-License-Identifier: BSD-3-Clause
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chat, drop, fixture, startPage } from "../tests/support/page.mjs";
import { png } from "../tests/support/pictures.mjs";

const [model, folder = fileURLToPath(new URL("../../docs/images/", import.meta.url))] = process.argv.slice(2);
if (model === undefined) throw new Error("which model? npm run screenshots -- MODEL.pte [FOLDER]");
const kQuestions = ["What is photosynthesis? Answer briefly.", "Write a Python function that returns the square of a number."];
const kMostBytes = 120_000;
const name = basename(model).replace(/[-_.](Q\d\w*|Instruct)/g, "").toLowerCase();

const kSize = { width: 1120, height: 700 };
const site = await startPage({ webgpu: true, context: { viewport: kSize, colorScheme: "light" } });

async function keep(page, file) {
  const session = await site.browser.context.newCDPSession(page);
  // A screen with two pixels for each.
  await session.send("Emulation.setDeviceMetricsOverride", { ...kSize, deviceScaleFactor: 2, mobile: false });
  await page.evaluate(() => document.activeElement?.blur());
  await page.mouse.move(0, 0);
  await page.waitForTimeout(300);
  for (const quality of [90, 80, 70, 60, 50]) {
    const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality, clip: { x: 0, y: 0, ...kSize, scale: 1 } });
    const bytes = Buffer.from(data, "base64");
    if (bytes.length > kMostBytes) continue;
    await writeFile(join(folder, `${file}.webp`), bytes);
    console.log(`${join(folder, `${file}.webp`)}: ${bytes.length} bytes`);
    return;
  }
  throw new Error(`${file}: more than ${kMostBytes} bytes`);
}

async function takeChat() {
  const page = await site.open("/");
  await chat.load(page, name);
  await chat.ready(page, 120_000);
  await chat.settings(page, { Temperature: 0, "Repetition penalty": 1, "Maximum answer length": 160 });
  for (const question of kQuestions) {
    await chat.ask(page, question);
    await chat.answer(page, 120_000);
  }
  await keep(page, "page-chat");
  await page.close();
}

async function takeInspect() {
  const page = await site.open("/#inspect");
  await page.getByLabel("To run on").selectOption("gpu");
  await page.getByLabel("Address of a .pte file").last().fill(name);
  await page.getByRole("button", { name: "Inspect", exact: true }).click();
  const canvas = page.locator(".graph canvas");
  await canvas.waitFor({ timeout: 60_000 });
  await page.getByPlaceholder("Find a node").fill("sdpa");
  await page.getByPlaceholder("Find a node").press("Enter");
  await page.locator(".graph-panel").evaluate((panel) => panel.scrollIntoView({ block: "end" }));
  await keep(page, "page-inspect");
  await page.close();
}

async function takeRun() {
  const page = await site.open("/#run");
  await page.locator("#panel-run h2").waitFor();
  // A sun over hills.
  const color = (x, y) => {
    const sun = Math.hypot(x - 88, y - 40) < 17;
    const hill = y > 84 + 12 * Math.sin(x / 15);
    const meadow = y > 102 + 6 * Math.sin(x / 9 + 2);
    return meadow ? [74, 128, 60] : hill ? [98, 156, 92] : sun ? [252, 214, 92] : [120 + y / 2, 176 + y / 3, 232];
  };
  await drop(page, [{ name: "net_cnn.pte", body: await fixture("ops/net_cnn.pte") }, { name: "hills.png", body: png(128, 128, color), type: "image/png" }]);
  await page.locator("canvas.preview").first().waitFor();
  await page.getByRole("button", { name: "Run forward" }).click();
  await page.locator(".card.output").waitFor();
  await page.locator("#panel-run fieldset.input").evaluate((input) => input.scrollIntoView({ block: "start" }));
  await keep(page, "page-run");
  await page.close();
}

try {
  await mkdir(folder, { recursive: true });
  site.server.file(`/${name}`, { body: await readFile(resolve(model)) });
  await takeChat();
  await takeInspect();
  await takeRun();
} finally {
  await site.close();
}

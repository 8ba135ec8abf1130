// The page in Chromium, as far as it works without the package: a server that lost the folder pteryx/ is one of its failures.
// SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { buildPage } from "../page/build.mjs";
import { servePage } from "../page/serve.mjs";
import { launchBrowser } from "./support/browser.mjs";
import { bundleTs } from "./support/import_ts.mjs";

let folder;
let server;
let browser;
let sizes;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "pteryx-page-"));
  ({ sizes } = await buildPage({ folder, engine: null }));
  server = await servePage({ folder });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

/** A page whose console and policy violations are kept in `problems`. */
async function open(path = "/", prepare) {
  const page = await browser.context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => /Content Security Policy|Refused to/.test(message.text()) && page.problems.push(message.text()));
  if (prepare) await page.addInitScript(prepare);
  await page.goto(server.origin + path);
  return page;
}

test("what the page starts with stays small: 60 kB of scripts, and 28 kB compressed with its style and text", (t) => {
  const parts = Object.entries(sizes).filter(([name]) => !/_view/.test(name));
  const sum = (of, what) => of.reduce((n, [, size]) => n + size[what], 0);
  const scripts = sum(parts.filter(([name]) => name.endsWith(".js")), "bytes");
  const compressed = sum(parts, "gzip");
  t.diagnostic(`${scripts} bytes of scripts, ${compressed} bytes of all compressed: ${parts.map(([name, { bytes, gzip }]) => `${name} ${bytes} (${gzip})`).join(", ")}`);
  assert.ok(scripts < 60_000, `${scripts} bytes of scripts`);
  assert.ok(compressed < 28_000, `${compressed} bytes compressed`);
});

test("a missing package is said in words, and nothing breaks the page's own policy", async () => {
  const page = await open();
  await page.fill("#model-url", "model.pte");
  await page.getByRole("button", { name: "Load", exact: true }).click();
  const card = page.locator(".outcome .card.error");
  await card.waitFor();
  assert.equal(await card.getAttribute("data-code"), "wasm");
  assert.match(await card.innerText(), /pteryx\/index\.js could not be loaded/);
  assert.equal(await page.inputValue("#model-url"), "model.pte");
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("without WebGPU the page says what to do, and that it runs on the CPU", async () => {
  const page = await open();
  const notice = page.locator(".notice");
  await notice.waitFor();
  assert.match(await notice.innerText(), /no WebGPU.*CPU/s);
  await notice.locator("summary").click();
  assert.match(await notice.innerText(), /graphics acceleration/);
  await page.close();
});

test("tabs work with the keyboard and the address", async () => {
  const page = await open();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.focus("#tab-chat");
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.id), "tab-inspect");
  assert.ok(await page.getByRole("tabpanel", { name: "Inspect" }).isVisible());
  assert.match(page.url(), /#inspect$/);
  await page.keyboard.press("End");
  await page.getByRole("heading", { name: "Run a program" }).waitFor();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.id), "tab-chat");
  await page.close();
  const second = await open("/#run");
  await second.getByRole("heading", { name: "Run a program" }).waitFor();
  await second.close();
});

test("colours follow the system until told otherwise, also after a reload", async () => {
  const page = await open();
  const expectTheme = (name) => page.waitForFunction((theme) => document.documentElement.dataset.theme === theme, name, { timeout: 5000 });
  await page.emulateMedia({ colorScheme: "dark" });
  await expectTheme("dark");
  await page.click("#theme");
  await expectTheme("light");
  await page.reload();
  await expectTheme("light");
  await page.click("#theme");
  await page.click("#theme");
  await expectTheme("dark");
  await page.emulateMedia({ colorScheme: "light" });
  await expectTheme("light");
  await page.close();
});

test("text can be read: contrast of 4.5 in both themes", async () => {
  const page = await open();
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const low = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const hex = style.getPropertyValue(name).trim();
        const [r, g, b] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const pairs = [];
      for (const text of ["--text", "--muted"]) for (const back of ["--paper", "--raised", "--sunken"]) pairs.push([text, back]);
      for (const place of ["gpu", "cpu", "free", "unsupported", "input", "output", "constant"]) pairs.push(["--text", `--place-${place}`]);
      pairs.push(["--accent", "--paper"], ["--accent-text", "--accent"], ["--danger", "--danger-soft"], ["--muted", "--warn-soft"], ["--text", "--accent-soft"]);
      return pairs.filter(([a, b]) => {
        const [x, y] = [light(a), light(b)].sort((m, n) => n - m);
        return (x + 0.05) / (y + 0.05) < 4.5;
      });
    });
    assert.deepEqual(low, [], colorScheme);
  }
  await page.close();
});

test("nothing sticks out at 360 pixels", async () => {
  const page = await open();
  await page.setViewportSize({ width: 360, height: 740 });
  for (const tab of ["chat", "inspect", "run"]) {
    await page.click(`#tab-${tab}`);
    await page.waitForFunction((name) => document.querySelector(`#panel-${name} h2`), tab);
    const wide = await page.evaluate(() => [...document.querySelectorAll("body *")].filter((e) => e.getClientRects().length > 0 && !e.closest(".unseen, .skip") && e.getBoundingClientRect().right > 361).map((e) => e.outerHTML.slice(0, 80)));
    assert.deepEqual(wide, [], tab);
  }
  await page.close();
});

test("every control has a name", async () => {
  const page = await open();
  for (const tab of ["chat", "inspect", "run"]) {
    await page.click(`#tab-${tab}`);
    await page.waitForFunction((name) => document.querySelector(`#panel-${name} h2`), tab);
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea, canvas")]
      .filter((e) => !e.getAttribute("aria-label") && !e.textContent.trim() && !(e.labels?.length > 0)).map((e) => e.outerHTML.slice(0, 100)));
    assert.deepEqual(nameless, [], tab);
    const ids = await page.evaluate(() => [...document.querySelectorAll("[id]")].map((e) => e.id));
    assert.equal(new Set(ids).size, ids.length);
  }
  await page.close();
});

test("a conversation is there again after a reload, as text and not as markup", async () => {
  const page = await open("/", () => {
    const hostile = "Hello **you** <img src=x onerror=\"window.hit = 1\"> [x](javascript:hit) <script>window.hit = 2</script>\n\n```html\n<b onclick=hit>a</b>\n```";
    localStorage.setItem("pteryx.turns", JSON.stringify([{ role: "user", content: "<b>Hi</b>" }, { role: "assistant", content: hostile }]));
  });
  await page.locator(".answer strong").waitFor();
  assert.equal(await page.locator(".question .bubble").innerText(), "<b>Hi</b>");
  assert.match(await page.locator(".answer .markdown").innerText(), /<img src=x onerror/);
  assert.equal(await page.locator(".answer img, .answer script, .answer b, .answer [onclick], .answer a").count(), 0);
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.equal(await page.locator("figure.code code").innerText(), "<b onclick=hit>a</b>");
  assert.deepEqual(page.problems, []);
  await page.close();
});

test("files dragged over the page show what dropping does", async () => {
  const page = await open("/#inspect");
  await page.getByRole("heading", { name: "Inspect a program" }).waitFor();
  const drag = (type) => page.evaluate((name) => {
    const data = new DataTransfer();
    data.items.add(new File(["x"], "net.pte"));
    document.body.dispatchEvent(new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer: data }));
  }, type);
  await drag("dragenter");
  assert.equal(await page.locator("#drop-target").innerText(), "Drop a program to inspect it");
  await drag("dragleave");
  assert.ok(await page.locator("#drop-target").isHidden());
  await drag("dragenter");
  await drag("drop");
  assert.ok(await page.locator("#drop-target").isHidden());
  await page.locator("#panel-inspect .card.error[data-code=wasm]").waitFor();
  await page.close();
});

test("markdown that grows keeps the blocks that are finished", async () => {
  const page = await browser.context.newPage();
  await page.goto(`${server.origin}/icon.svg`);
  await page.goto("about:blank");
  await page.addScriptTag({ content: await bundleTs("page/src/markdown/render.ts", "markdown") });
  const result = await page.evaluate(() => {
    const text = "# Title\n\nA paragraph with *emphasis* and `code`.\n\n- one\n- two\n  - three\n\n```js\nlet a = 1;\nlet b = 2;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nlast";
    const element = document.createElement("div");
    const view = new markdown.MarkdownView(element);
    let replaced = 0;
    let finished = [];
    for (let i = 1; i <= text.length; i++) {
      view.update(text.slice(0, i));
      const now = [...element.children].slice(0, -1);
      finished.forEach((node, k) => (replaced += now[k] === node || element.children[k] === node ? 0 : 1));
      finished = now.slice(0, -1);
    }
    return { replaced, same: element.innerHTML === markdown.renderMarkdown(text).innerHTML, html: element.innerHTML };
  });
  assert.equal(result.replaced, 0);
  assert.ok(result.same, result.html);
  await page.close();
});

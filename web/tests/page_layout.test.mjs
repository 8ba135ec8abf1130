// The page with real content on a phone, in the dark, with the keyboard and for screen readers. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { chat, drop, failure, fixture, screenshot, startPage } from "./support/page.mjs";
import { npy } from "./support/pictures.mjs";

let site;
before(async () => {
  site = await startPage({ webgpu: true });
  await site.serve("web/chat.pte");
});
after(() => site?.close());

const kAnswer = `Rayleigh scattering: **short waves** are scattered more.

| colour | wavelength |
|---|---|
| blue | 450 nm |
| red | 700 nm, and this cell has a text that is long enough to need more room than a phone has |

1. Light comes in.
2. Air scatters it.

\`\`\`python
def scattering(wavelength_nm: float) -> float:  # a line that is much longer than a phone is wide
    return (550 / wavelength_nm) ** 4
\`\`\`

See \`https://example.org/a/very/long/address/without/any/break/in/it/that/would/push/the/page/wide\`.`;

/** A conversation with tables and code in it, and a model that can go on with it. */
async function conversation(options) {
  const page = await site.open("/", `localStorage.getItem("pteryx.turns") || localStorage.setItem("pteryx.turns", ${JSON.stringify(JSON.stringify([{ role: "user", content: "Why is the sky blue?" }, { role: "assistant", content: kAnswer }]))})`);
  if (options?.viewport) await page.setViewportSize(options.viewport);
  if (options?.colorScheme) await page.emulateMedia({ colorScheme: options.colorScheme });
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  return page;
}

/** What is wider than the screen, apart from what scrolls within itself. */
const sticksOut = (page) => page.evaluate(() => {
  const scrolls = (element) => element !== null && element !== document.body && (/(auto|scroll|hidden)/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
  return [...document.querySelectorAll("body *")]
    .filter((e) => e.getClientRects().length > 0 && !e.closest(".unseen, .skip") && e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement))
    .map((e) => e.outerHTML.slice(0, 100));
});
/** Whether a panel can be pushed sideways, which is worse than a line that is cut off. */
const slides = (page) => page.evaluate(() => [document.scrollingElement, ...document.querySelectorAll("main, [role=tabpanel], .scroller")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => `${e.tagName}.${e.className} ${e.scrollWidth} > ${e.clientWidth}`));

async function inspectAndRun(page) {
  await page.click("#tab-inspect");
  await page.locator("#panel-inspect h2").waitFor();
  await drop(page, [{ name: "net_cnn.pte", body: await fixture("ops/net_cnn.pte") }]);
  await page.locator(".graph canvas").waitFor();
}
async function run(page) {
  await page.getByRole("button", { name: "Run it" }).click();
  await page.locator("#panel-run fieldset.input").waitFor();
  await drop(page, [{ name: "x.npy", body: npy([1, 3, 32, 32], Buffer.alloc(4 * 3 * 32 * 32)) }]);
  await page.getByRole("button", { name: "Run forward" }).click();
  await page.locator(".card.output").waitFor();
}

for (const [name, viewport, colorScheme] of [["phone", { width: 390, height: 844 }, "light"], ["phone-dark", { width: 390, height: 844 }, "dark"], ["desk-dark", { width: 1280, height: 800 }, "dark"]]) {
  test(`nothing sticks out or slides sideways: ${name}`, async () => {
    await site.forget();
    const page = await site.open("/");
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    const holds = async (what) => {
      assert.deepEqual(await sticksOut(page), [], what);
      assert.deepEqual(await slides(page), [], what);
      await screenshot(page, `${name}-${what}`);
    };
    await holds("first-visit");
    await page.close();
    const talk = await conversation({ viewport, colorScheme });
    const check = async (what) => {
      assert.deepEqual(await sticksOut(talk), [], what);
      assert.deepEqual(await slides(talk), [], what);
      await screenshot(talk, `${name}-${what}`);
    };
    await check("chat");
    await talk.getByRole("button", { name: "Settings", exact: true }).click();
    await check("settings");
    await talk.keyboard.press("Escape");
    await talk.getByRole("button", { name: "Change model" }).click();
    await chat.load(talk, "missing/with/a/long/address/that/has/no/break/anywhere/model.pte");
    await failure(talk, ".outcome");
    await check("failure");
    await inspectAndRun(talk);
    await check("inspect");
    await talk.locator(".graph canvas").scrollIntoViewIfNeeded();
    await check("graph");
    await run(talk);
    await check("run");
    await talk.close();
  });
}

test("the dark theme is dark everywhere, and text on it can be read", async () => {
  const page = await conversation({ colorScheme: "dark" });
  const low = await page.evaluate(() => {
    const parse = (text) => /rgba?\(([^)]+)\)/.exec(text)[1].split(/[\s,/]+/).map(Number);
    const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const backOf = (element) => {
      for (let e = element; e; e = e.parentElement) {
        const color = parse(getComputedStyle(e).backgroundColor);
        if (color[3] === undefined || color[3] > 0) return color;
      }
      return [255, 255, 255];
    };
    const texts = [...document.querySelectorAll("body *")].filter((e) => e.getClientRects().length > 0 && !e.closest(".unseen, .skip, [disabled]") && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()));
    if (texts.length < 20) return [`only ${texts.length} texts`];
    return texts.map((e) => {
      const [a, b] = [light(parse(getComputedStyle(e).color)), light(backOf(e))].sort((m, n) => n - m);
      return [(a + 0.05) / (b + 0.05), light(backOf(e)), e.outerHTML.slice(0, 80)];
    }).filter(([ratio, back]) => ratio < 4.5 || back > 0.6);
  });
  assert.deepEqual(low, []);
  await page.close();
});

test("everything in a chat can be reached and done with the keyboard alone", async () => {
  await site.forget();
  const page = await site.open("/");
  const focused = () => page.evaluate(() => {
    const e = document.activeElement;
    return e.getAttribute("aria-label") ?? (e.labels?.[0] ?? e).innerText?.trim().split("\n")[0] ?? e.tagName;
  });
  /** Presses Tab until the focus is on something, and gives what it passed. */
  const tabTo = async (name, key = "Tab") => {
    const passed = [];
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press(key);
      const now = await focused();
      if (now === name) return passed;
      passed.push(now);
    }
    assert.fail(`Tab does not reach '${name}': ${passed.join(", ")}`);
  };
  assert.deepEqual(await tabTo("Load"), ["Skip to the content", "Chat", "Colours: Auto. Change", "Model URL"]);
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.type("chat.pte");
  await page.keyboard.press("Enter");
  await chat.ready(page);
  // The focus is where the next thing is done.
  await page.waitForFunction(() => document.activeElement?.id === "question");
  await page.keyboard.type("First line");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("second line");
  await page.keyboard.press("Enter");
  await chat.answer(page);
  assert.equal(await page.locator(".question .bubble").innerText(), "First line\nsecond line");
  await tabTo("Regenerate", "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement?.id === "question");
  await chat.answer(page);
  await tabTo("Settings", "Shift+Tab");
  await page.keyboard.press("Enter");
  await tabTo("Temperature");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("0");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("dialog").isVisible(), false);
  assert.equal(await focused(), "Settings");
  assert.equal(await page.evaluate(() => JSON.parse(localStorage.getItem("pteryx.settings")).temperature), 0);
  await tabTo("Edit");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByLabel("Your message").inputValue(), "");
  await page.close();
});

test("screen readers hear what happens, and find their way", async () => {
  await site.forget();
  const page = await site.open("/");
  const heard = page.locator("#announcer");
  assert.equal(await heard.getAttribute("aria-live"), "polite");
  await chat.load(page, "chat.pte");
  await chat.ready(page);
  assert.match(await heard.innerText(), /Loading chat\.pte[\s\S]*chat\.pte is ready/);
  await chat.settings(page, { Temperature: 0, "Maximum answer length": 10 });
  await chat.ask(page, "Hello");
  const answer = await chat.answer(page);
  assert.ok((await heard.innerText()).includes(answer.trim()), "the answer is read out when it is there");
  assert.equal(await page.getByRole("log", { name: "Conversation" }).getAttribute("aria-live"), "off", "and not token by token");
  for (const [role, name] of [["banner"], ["main"], ["tablist", "What to do"], ["tab", "Chat"], ["tabpanel", "Chat"], ["article", "You"], ["article", "Answer"], ["button", "Send"], ["textbox", "Your message"]]) {
    assert.equal(await page.getByRole(role, { ...(name && { name, exact: true }) }).count(), 1, `${role} ${name ?? ""}`);
  }
  assert.equal(await page.getByRole("tab", { selected: true }).innerText(), "Chat");
  await inspectAndRun(page);
  assert.match(await heard.innerText(), /net_cnn\.pte: 1 method/);
  assert.match(await page.locator("canvas").first().getAttribute("aria-label"), /^Graph of forward: \d+ nodes, \d+ edges\..*table of nodes/);
  await run(page);
  assert.match(await heard.innerText(), /x\.npy is the input[\s\S]*Finished in/);
  // Headings go down one step at a time.
  const levels = await page.evaluate(() => [...document.querySelectorAll("h1, h2, h3, h4")].filter((e) => e.getClientRects().length > 0).map((e) => Number(e.tagName[1])));
  levels.reduce((before, level) => (assert.ok(level <= before + 1, `h${level} after h${before}`), level));
  await page.close();
});

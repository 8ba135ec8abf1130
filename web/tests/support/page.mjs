// The built page with the package, on a server that counts and breaks, in a browser. SPDX-License-Identifier: BSD-3-Clause
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPage } from "../../page/build.mjs";
import { launchBrowser } from "./browser.mjs";
import { startServer } from "./server.mjs";

const kRoot = new URL("../../../", import.meta.url);
/** Where pictures of the page are kept: what the tests saw last. */
export const kScreenshots = fileURLToPath(new URL("build-web/screenshots/", kRoot));

/** A committed file, by its path below tests/fixtures. */
export function fixture(path) {
  return readFile(new URL(`tests/fixtures/${path}`, kRoot));
}

/**
 * Builds the page with web/dist and serves it.
 * @param {{ webgpu?: boolean, args?: string[], headers?: Record<string, string>, context?: object }} [options] `headers`: of every answer;
 *   others: see `launchBrowser`
 */
export async function startPage({ headers, ...browserOptions } = {}) {
  const folder = await mkdtemp(join(tmpdir(), "pteryx-page-"));
  await buildPage({ folder });
  const server = await startServer({ root: folder, ...(headers && { headers }) });
  const browser = await launchBrowser(browserOptions);
  await mkdir(kScreenshots, { recursive: true });
  return {
    server,
    browser,
    /** Serves a committed file under its own name; gives how it is served, which can be changed. */
    async serve(path, how = {}) {
      return server.file(`/${basename(path)}`, { body: await fixture(path), ...how });
    },
    /** A page at a path; what its scripts failed with, and what its policy refused, is in `problems`. `init` runs before its scripts. */
    async open(path = "/", init) {
      const page = await browser.context.newPage();
      page.problems = [];
      page.on("pageerror", (error) => page.problems.push(String(error)));
      page.on("console", (message) => /Content Security Policy|Refused to/.test(message.text()) && page.problems.push(message.text()));
      page.setDefaultTimeout(60_000);
      if (init) await page.addInitScript(init);
      await page.goto(server.origin + path);
      return page;
    },
    /** Runs a script in the package's worker before it, from the next page on: a browser with another GPU, or a slow one. `null`: as it was. */
    async inWorker(script) {
      server.remove("/pteryx/worker.js");
      if (script === null) return;
      const worker = await readFile(join(folder, "pteryx/worker.js"), "utf8");
      server.file("/pteryx/worker.js", { body: Buffer.from(`(${script})();${worker}`), type: "text/javascript" });
    },
    /** Starts over: nothing is kept of earlier visits. */
    forget: () => forget(browser, server.origin),
    async close() {
      await browser.close();
      await server.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Clears what a browser keeps of an origin, and its cache of files. */
export async function forget(browser, origin) {
  const page = await browser.context.newPage();
  const session = await browser.context.newCDPSession(page);
  await session.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
  await session.send("Network.clearBrowserCache");
  await page.close();
}

/** Keeps a picture of what is visible. */
export function screenshot(page, name) {
  return page.screenshot({ path: join(kScreenshots, `${name}.png`), animations: "disabled", timeout: 60_000 });
}

/** Drops files on the page, as from a file manager. */
export async function drop(page, files) {
  const data = await page.evaluateHandle((list) => {
    const transfer = new DataTransfer();
    for (const [name, text, type] of list) transfer.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name, { type }));
    return transfer;
  }, files.map(({ name, body, type = "" }) => [name, Buffer.from(body).toString("base64"), type]));
  await page.dispatchEvent("body", "dragenter", { dataTransfer: data });
  await page.dispatchEvent("body", "drop", { dataTransfer: data });
}

/** The chat as a person uses it. */
export const chat = {
  /** Loads what the address field is given; `device`: chosen under Options first. */
  async load(page, address, device) {
    if (device) await this.device(page, device);
    await page.getByLabel("Model URL").fill(address);
    await page.getByRole("button", { name: "Load", exact: true }).click();
  },
  async device(page, device) {
    if (!(await page.getByLabel("Run on").isVisible())) await page.locator(".model-panel summary", { hasText: "Options" }).click();
    await page.getByLabel("Run on").selectOption(device);
  },
  async ready(page, timeout = 60_000) {
    await page.locator(".bar .device-facts").waitFor({ timeout });
  },
  async ask(page, text) {
    await page.getByLabel("Your message").fill(text);
    await page.getByLabel("Your message").press("Enter");
  },
  /** Waits until the last answer is finished, and gives its text. */
  async answer(page, timeout = 60_000) {
    await page.locator('.answer[aria-busy="false"]').last().waitFor({ timeout });
    await page.locator('.composer button[aria-label="Send"]').waitFor({ timeout });
    return page.locator(".answer .markdown").last().innerText();
  },
  /** Sets fields of the settings by their labels. */
  async settings(page, values) {
    await page.getByRole("button", { name: "Settings", exact: true }).click();
    for (const [label, value] of Object.entries(values)) {
      const field = page.getByRole(label === "System prompt" ? "textbox" : "spinbutton", { name: label, exact: true });
      await field.fill(String(value));
      await field.blur();
    }
    await page.getByRole("button", { name: "Close settings" }).click();
  },
};

/** The failure that the page shows within `where`: its code and all of its text. */
export async function failure(page, where = "body", timeout = 60_000) {
  const card = page.locator(`${where} .card.error[data-code]`).last();
  await card.waitFor({ timeout });
  return { code: await card.getAttribute("data-code"), text: await card.innerText(), card };
}

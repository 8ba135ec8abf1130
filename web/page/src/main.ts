// The page: three views, one header. SPDX-License-Identifier: BSD-3-Clause

import { hasSimd } from "../../src/engine/simd.ts";
import { missingPart } from "../../src/errors.ts";
import type { CacheEntry } from "../../src/index.ts";
import { ChatView } from "./chat/chat_view.ts";
import { byId, el, icon } from "./dom.ts";
import { loadEngine } from "./engine.ts";
import { addressOf, type PageInput } from "./input.ts";
import { listenForFiles, sortFiles } from "./shell/drop.ts";
import { errorCard } from "./shell/error_card.ts";
import { type TabName, Tabs } from "./shell/tabs.ts";
import { openStore, readLastModel, readString } from "./storage.ts";
import { applyTheme, storedTheme, type Theme } from "./theme.ts";
import { browserOf, detectWebGpu, webGpuAdvice } from "./webgpu_support.ts";

const local = openStore("local");
const session = openStore("session");
const tabs = new Tabs();

/** The other two tabs come when they are first opened: most visitors only chat. */
const inspectView = once(async () => new (await import("./inspect/inspect_view.ts")).InspectView(openRun, showCache));
const runView = once(async () => new (await import("./run/run_view.ts")).RunView(openInspect, showCache));
const chat = new ChatView(local, session, openInspect);

tabs.onShow(openTab);
openTab(tabs.active);
listenForFiles({
  describe: () => ({ chat: "Drop a model to chat with it", inspect: "Drop a program to inspect it", run: "Drop a program, a picture or .npy files" })[tabs.active],
  takesPasted: (file) => ({ chat: false, inspect: /\.ptd$/i.test(file.name), run: true })[tabs.active],
  accept: (files) => {
    if (tabs.active === "run") void withView("run", runView, (view) => view.take(files));
    else if (tabs.active === "inspect") void withView("inspect", inspectView, (view) => view.take(files));
    else void chat.panel.load(sortFiles(files).program ?? files[0]!);
  },
});

themeButton();
void describeDevice();
void openModel();

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make().catch((error: unknown) => {
    made = null;
    throw error;
  }));
}

/** Does something with the view of a tab; what fails, such as fetching its script, is shown in the tab. */
async function withView<View>(tab: TabName, open: () => Promise<View>, act: (view: View) => unknown = () => undefined): Promise<void> {
  const panel = byId(`panel-${tab}`);
  const clear = (): void => panel.querySelector(":scope > .failed")?.remove();
  try {
    const view = await open().catch((error: unknown) => {
      throw missingPart("a script of this page", `could not be loaded: ${String(error)}`, error);
    });
    clear();
    await act(view);
  } catch (error) {
    clear();
    panel.append(el("div", { class: "page failed" }, errorCard(error, { retry: () => void withView(tab, open, act) })));
  }
}

function openTab(tab: TabName): void {
  if (tab === "inspect") void withView(tab, inspectView);
  if (tab === "run") void withView(tab, runView);
}

function openInspect(input: PageInput, device: string, data?: readonly File[]): void {
  tabs.show("inspect");
  void withView("inspect", inspectView, (view) => view.inspect(input, data, device));
}

function showCache(): void {
  tabs.show("chat");
  chat.showCache();
}

function openRun(input: PageInput, data?: readonly File[]): void {
  tabs.show("run");
  void withView("run", runView, (view) => view.load(input, data));
}

function themeButton(): void {
  const button = byId<HTMLButtonElement>("theme");
  const order: readonly Theme[] = ["system", "light", "dark"];
  let theme = storedTheme();
  const show = (): void => {
    applyTheme(theme);
    const name = { system: "Auto", light: "Light", dark: "Dark" }[theme];
    button.replaceChildren(icon("M12 3a9 9 0 1 0 0 18ZM12 3a9 9 0 0 1 0 18"), name);
    button.setAttribute("aria-label", `Colours: ${name}. Change`);
  };
  button.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length]!;
    try {
      if (theme === "system") localStorage.removeItem("pteryx.theme");
      else localStorage.setItem("pteryx.theme", theme);
    } catch {
      // Without storage it holds until the page is closed.
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

/** The GPU's name in the header; where there is none, what to do about it. */
async function describeDevice(): Promise<void> {
  const support = await detectWebGpu();
  if (support.kind === "gpu") {
    byId("device").textContent = support.software ? "CPU" : support.name;
    byId("device").title = support.software ? `WebGPU offers only a software GPU (${support.name}), which is slower than Pteryx on the CPU` : "GPU in use";
    return;
  }
  const simd = hasSimd();
  byId("device").textContent = simd ? "CPU" : "no usable device";
  const what = simd
    ? [el("strong", {}, "This browser offers no WebGPU."), " Models run on the CPU, which works but is slower."]
    : [el("strong", {}, "This browser has neither WebGPU nor WebAssembly SIMD."), " No model can run in it."];
  const dismiss = (): void => {
    session.set("no-webgpu", "seen");
    byId("notices").replaceChildren();
  };
  if (session.get("no-webgpu", readString) === "seen") return;
  byId("notices").replaceChildren(el("section", { class: "notice row", "aria-label": "No WebGPU" },
    el("details", {},
      el("summary", {}, ...what, " ", el("span", { class: "link" }, "What to do")),
      el("ul", {}, ...webGpuAdvice(support.reason, browserOf(navigator.userAgent)).map((step) => el("li", {}, step)))),
    el("button", { type: "button", class: "quiet", "aria-label": "Dismiss: no WebGPU", onclick: dismiss }, "Dismiss")));
}

/** The model that a link names, if it may be loaded without asking; else, after a reload, the one that was in use. */
async function openModel(): Promise<void> {
  const named = new URLSearchParams(location.search).get("model");
  const last = session.get("model", readLastModel)?.url;
  // A load that ended the tab is not repeated by itself.
  const crashed = session.get("loading", readString);
  session.set("loading", null);
  const url = named ?? last;
  if (!url || crashed === url) return chat.panel.refresh();
  if (named) {
    const address = addressOf(named);
    const trusted = address && (address.origin === location.origin || address.href === last);
    const cached = trusted ? null : await findCached(address);
    if (!trusted && !cached?.complete) return chat.panel.offer(named, cached?.size);
  }
  session.set("loading", url);
  await chat.panel.load(url);
  session.set("loading", null);
}

async function findCached(address: URL | null): Promise<CacheEntry | undefined> {
  const list = await loadEngine().then(({ cache }) => cache.list()).catch(() => []);
  return list.find((entry) => entry.url === address?.href);
}

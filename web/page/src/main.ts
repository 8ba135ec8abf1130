// The page: three views, one header. SPDX-License-Identifier: BSD-3-Clause

import { hasSimd } from "../../src/engine/simd.ts";
import { PteryxError } from "../../src/errors.ts";
import { ChatView } from "./chat/chat_view.ts";
import { byId, el, icon } from "./dom.ts";
import type { PageInput } from "./input.ts";
import { listenForFiles } from "./shell/drop.ts";
import { errorCard } from "./shell/error_card.ts";
import { type TabName, Tabs } from "./shell/tabs.ts";
import { openStore, readLastModel, readString } from "./storage.ts";
import { applyTheme, storedTheme, type Theme } from "./theme.ts";
import { browserOf, detectWebGpu, webGpuAdvice } from "./webgpu_support.ts";

const local = openStore("local");
const session = openStore("session");
const tabs = new Tabs();

/** The other two tabs come when they are first opened: most visitors only chat. */
const inspectView = once(async () => new (await import("./inspect/inspect_view.ts")).InspectView(openRun));
const runView = once(async () => new (await import("./run/run_view.ts")).RunView(openInspect));
const chat = new ChatView(local, session, openInspect);

tabs.onShow((tab) => void openTab(tab));
void openTab(tabs.active);
listenForFiles(
  () => ({ chat: "Drop a model to chat with it", inspect: "Drop a program to inspect it", run: "Drop a program, a picture or .npy files" })[tabs.active],
  (files) => {
    if (tabs.active === "run") void runView().then((view) => view.take(files));
    else if (tabs.active === "inspect") void inspectView().then((view) => view.take(files));
    else void chat.panel.load(files[0]!);
  });

themeButton();
void describeDevice();
openModel();

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () => (made ??= make().catch((error: unknown) => {
    made = null;
    throw error;
  }));
}

async function openTab(tab: TabName): Promise<void> {
  try {
    if (tab === "inspect") await inspectView();
    if (tab === "run") await runView();
  } catch (error) {
    const missing = new PteryxError("wasm", `a script of this page could not be loaded: ${String(error)}`);
    byId(`panel-${tab}`).replaceChildren(el("div", { class: "page" }, errorCard(missing)));
  }
}

function openInspect(input: PageInput, device: string, data?: readonly File[]): void {
  tabs.show("inspect");
  void inspectView().then((view) => view.inspect(input, data, device));
}

function openRun(input: PageInput, data?: readonly File[]): void {
  tabs.show("run");
  void runView().then((view) => view.load(input, data));
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

/** The model that the address names; else, after a reload, the one that was in use. */
function openModel(): void {
  const named = new URLSearchParams(location.search).get("model");
  const last = session.get("model", readLastModel);
  // A load that ended the tab is not repeated by itself.
  const crashed = session.get("loading", readString);
  const url = named ?? last?.url;
  if (!url || crashed === url) {
    session.set("loading", null);
    chat.panel.refresh();
    return;
  }
  session.set("loading", url);
  void chat.panel.load(url).finally(() => session.set("loading", null));
}

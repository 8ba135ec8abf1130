// Choosing and loading a model. SPDX-License-Identifier: BSD-3-Clause

import type { Model, ModelOptions } from "../../../src/types.ts";
import { unlessAborted } from "../abort.ts";
import { el, kDevices, option, select } from "../dom.ts";
import { loadEngine } from "../engine.ts";
import { formatBytes } from "../format.ts";
import { addressOf, nameOf, packageInput, type PageInput } from "../input.ts";
import { announce } from "../shell/announcer.ts";
import { cacheRemedies } from "../shell/cache_remedies.ts";
import { pickFiles } from "../shell/drop.ts";
import { errorCard } from "../shell/error_card.ts";
import { ProgressView } from "../shell/progress_view.ts";
import { mayUseGpu } from "../webgpu_support.ts";
import { CacheList } from "./cache_list.ts";
import { Suggestions } from "./suggestions.ts";

export interface ModelPanelEvents {
  /** The panel has something to show: it is to be in sight. */
  attention(): void;
  loaded(model: Model, input: PageInput): void;
  inspect(input: PageInput, device: string): void;
  /** The name of the model in use; null where there is none. */
  inUse(): string | null;
  /** Frees what the model in use holds. */
  unload(): Promise<void>;
}

interface LoadChoices {
  /** What Options say, unless told. */
  readonly device?: string;
  readonly cache?: boolean;
}

export class ModelPanel {
  private readonly address = el("input", { id: "model-url", type: "text", inputmode: "url", autocomplete: "off", spellcheck: "false", placeholder: "https://example.org/model.gguf" });
  private readonly device = select("model-device", kDevices);
  private readonly precision = select("model-precision", { "": "Default (f16)", f32: "f32, exact", f16: "f16, faster" });
  private readonly tokenizerName = el("span", { class: "hint" }, "the file's own");
  private readonly outcome = el("div", { class: "outcome" });
  private readonly chooser: HTMLElement;
  private readonly cacheList = new CacheList((input) => void this.load(input));
  private readonly suggestions = new Suggestions((url) => void this.load(url));
  private readonly title = el("h2", { id: "model-title" });
  private readonly lead = el("p", { class: "lead" }, "It runs in this browser. Nothing you write leaves your machine.");
  private tokenizer: File | null = null;
  private running: AbortController | null = null;
  readonly element: HTMLElement;

  constructor(private readonly events: ModelPanelEvents) {
    const submit = (event: Event): void => {
      event.preventDefault();
      const text = this.address.value.trim();
      if (text !== "") void this.load(text);
    };
    this.chooser = el("div", {},
      el("form", { onsubmit: submit },
        el("label", { for: "model-url" }, "Model URL"),
        el("div", { class: "joined" }, this.address, el("button", { class: "primary" }, "Load"))),
      el("p", { class: "or" }, el("button", { type: "button", onclick: () => this.pick() }, "Choose a file"), el("span", { class: "by-drop" }, "or drop a .pte or .gguf file anywhere on this page.")),
      el("details", {}, el("summary", {}, "Where do I get a model?"),
        el("p", { class: "hint" }, "Most small language models are published as GGUF files; one of up to 2 billion parameters in 4 or 8 bits runs well in a browser. ",
          "The first load converts it, which takes a while and storage for both files, and caches the result. To convert one beforehand: ", el("code", {}, "pteryx convert model.gguf -o model.pte"), ".")),
      el("details", {}, el("summary", {}, "Options"),
        option("model-device", "Run on", this.device),
        option("model-precision", "Matrix products", this.precision),
        el("div", { class: "option" }, el("span", {}, "Tokenizer"), this.tokenizerName, el("button", { type: "button", onclick: () => this.pickTokenizer() }, "Choose"))));
    this.element = el("section", { class: "model-panel", id: "model-panel", "aria-labelledby": "model-title" },
      this.title, this.lead, this.outcome, this.suggestions.element, this.chooser, this.cacheList.element);
    this.showInUse(false);
  }

  /** The panel's title: it is for a first model, or for another one. */
  showInUse(inUse: boolean): void {
    this.title.textContent = inUse ? "Change model" : "Chat with a model of your own";
    this.lead.hidden = inUse;
  }

  refresh(): void {
    if (!this.running) void this.cacheList.refresh();
  }

  /** What is in the cache, in sight. */
  async showCache(): Promise<void> {
    await this.cacheList.refresh();
    this.cacheList.focus();
  }

  /** Names the model of a link, and waits: following a link downloads nothing by itself. `bytes`: its size, if known. */
  offer(address: string, bytes?: number): void {
    this.refresh();
    if (this.running || this.address.value !== "") return;
    this.address.value = address;
    const name = nameOf(address);
    const url = addressOf(address);
    const size = bytes !== undefined && Number.isFinite(bytes) ? ` (${formatBytes(bytes)})` : "";
    this.events.attention();
    this.outcome.replaceChildren(el("section", { class: "card", "aria-label": `Load ${name}?` },
      el("h3", {}, `Load ${name}?`),
      el("p", {}, "The link you followed names a model", size, " on another site: ", el("strong", {}, url?.host || address), ". It is only downloaded if you load it."),
      el("div", { class: "actions" },
        el("button", { type: "button", class: "primary", onclick: () => void this.load(address) }, "Load this model"),
        el("button", { type: "button", onclick: () => this.decline() }, "Dismiss"))));
  }

  private decline(): void {
    this.outcome.replaceChildren();
    this.address.value = "";
    this.address.focus();
  }

  pick(): void {
    pickFiles({ accept: ".pte,.gguf" }, ([file]) => file && void this.load(file));
  }

  private pickTokenizer(): void {
    pickFiles({}, ([file]) => {
      this.tokenizer = file ?? null;
      this.tokenizerName.textContent = file?.name ?? "the file's own";
    });
  }

  /** Loads in place of what is loading; an error is shown in the panel. True where the model is in use now. */
  async load(input: PageInput, choices: LoadChoices = {}, unload = false): Promise<boolean> {
    const { device = this.device.value, cache = true } = choices;
    this.running?.abort();
    const controller = (this.running = new AbortController());
    const name = nameOf(input);
    const progress = new ProgressView(name, () => controller.abort());
    this.outcome.replaceChildren(progress.element);
    this.chooser.hidden = true;
    this.suggestions.element.classList.add("unshown");
    this.cacheList.element.hidden = true;
    this.events.attention();
    announce(`Loading ${name}`);
    try {
      if (unload) await progress.waitFor(`Unloading ${this.events.inUse()}`, this.events.unload(), controller.signal);
      const { loadModel } = await unlessAborted(loadEngine(), controller.signal);
      const model = await loadModel(packageInput(input), { ...this.options(controller.signal, progress), device: device as "auto" | "gpu" | "cpu", cache });
      if (controller.signal.aborted) {
        await model.dispose();
        throw new DOMException(`${name} was ready when it was cancelled`, "AbortError");
      }
      this.outcome.replaceChildren();
      announce(`${name} is ready`);
      this.events.loaded(model, input);
      return true;
    } catch (error) {
      if (this.running === controller) this.fail(error, input, choices);
      return false;
    } finally {
      if (this.running === controller) this.reset();
    }
  }

  private options(signal: AbortSignal, progress: ProgressView): ModelOptions {
    return {
      signal,
      onProgress: progress.update,
      ...(this.precision.value !== "" && { precision: this.precision.value as "f32" | "f16" }),
      ...(this.tokenizer && { tokenizer: this.tokenizer }),
    };
  }

  private fail(error: unknown, input: PageInput, choices: LoadChoices): void {
    const { device = this.device.value } = choices;
    const again = (other: LoadChoices = {}, unload = false): void => void this.load(input, { ...choices, ...other }, unload);
    const inUse = this.events.inUse();
    this.outcome.replaceChildren(errorCard(error, {
      retry: () => again(),
      ...(inUse !== null && { unload: () => again({}, true) }),
      ...(mayUseGpu(device) && { "use-cpu": () => again({ device: "cpu" }) }),
      ...cacheRemedies(input, (cache) => again(cache ? {} : { cache }), () => this.cacheList.focus()),
      inspect: () => this.events.inspect(input, device),
    }, { unload: `Unload ${inUse} and try again` }));
    if (typeof input === "string") this.address.value = input;
  }

  private reset(): void {
    this.running = null;
    this.chooser.hidden = false;
    this.suggestions.element.classList.remove("unshown");
    this.refresh();
  }
}

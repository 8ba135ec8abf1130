// Running a method of a program on pictures, .npy files or numbers. SPDX-License-Identifier: BSD-3-Clause

import type { MethodInfo, Outputs, Program } from "../../../src/types.ts";
import { unlessAborted } from "../abort.ts";
import { byId, el, kDevices, option, select } from "../dom.ts";
import { loadEngine } from "../engine.ts";
import { formatDevice, formatDuration } from "../format.ts";
import { nameOf, packageInput, type PageInput } from "../input.ts";
import { announce } from "../shell/announcer.ts";
import { cacheRemedies } from "../shell/cache_remedies.ts";
import { pickFiles, sortFiles } from "../shell/drop.ts";
import { errorCard } from "../shell/error_card.ts";
import { ProgressView } from "../shell/progress_view.ts";
import { mayUseGpu } from "../webgpu_support.ts";
import { InputCard } from "./input_card.ts";
import { outputCard } from "./output_card.ts";
import { parseLabels } from "./statistics.ts";

export class RunView {
  private program: Program | null = null;
  /** What was loaded before, as long as it holds memory: it goes when its run has ended. */
  private unloading: Promise<void> | null = null;
  private method: MethodInfo | null = null;
  private cards: InputCard[] = [];
  private outputs: Outputs | null = null;
  private labels: string[] = [];
  /** The load, and the run, under way. */
  private loading: AbortController | null = null;
  private running: AbortController | null = null;
  /** Loads the program again. */
  private reload = (): void => undefined;
  private readonly device = select("run-device", kDevices);
  private readonly loader = el("div", { class: "outcome" });
  private readonly start = el("button", { class: "primary" });
  private readonly halt = el("button", { type: "button", hidden: true, onclick: () => this.stop() }, "Stop");
  private readonly inputs = el("form", { class: "inputs", onsubmit: (event) => this.submit(event) });
  private readonly results = el("div", { class: "results" });

  constructor(private readonly inspect: (input: PageInput, device: string, data?: readonly File[]) => void, private readonly showCache: () => void) {
    const address = el("input", { id: "run-url", type: "text", inputmode: "url", autocomplete: "off", spellcheck: "false", placeholder: "https://example.org/model.pte" });
    const submit = (event: Event): void => {
      event.preventDefault();
      if (address.value.trim() !== "") void this.load(address.value.trim());
    };
    byId("panel-run").append(el("div", { class: "page" },
      el("h2", {}, "Run a program"),
      el("p", { class: "lead" }, "Run a .pte file on an image, .npy files or numbers."),
      el("form", { class: "source", onsubmit: submit },
        el("label", { for: "run-url" }, "Address of a .pte file"),
        el("div", { class: "joined" }, address, el("button", { class: "primary" }, "Load"))),
      el("p", { class: "or" }, el("button", { type: "button", onclick: () => pickFiles({ multiple: true }, (files) => void this.take(files)) }, "Choose a file"), el("span", { class: "by-drop" }, "or drop it anywhere on this page, with its .ptd files if it has any.")),
      option("run-device", "Run on", this.device),
      this.loader, this.inputs, this.results));
  }

  /** `data`: its external weights. */
  async load(input: PageInput, data: readonly File[] = [], device = this.device.value, cache = true): Promise<void> {
    this.device.value = device;
    this.drop();
    this.loading?.abort();
    const controller = (this.loading = new AbortController());
    this.reload = () => void this.load(input, data);
    const name = nameOf(input);
    const progress = new ProgressView(name, () => controller.abort());
    this.loader.replaceChildren(progress.element);
    this.inputs.replaceChildren();
    this.results.replaceChildren();
    this.unload();
    try {
      if (this.unloading) await progress.waitFor("Unloading the previous program", this.unloading, controller.signal);
      const { loadProgram } = await unlessAborted(loadEngine(), controller.signal);
      const program = await loadProgram(packageInput(input), {
        signal: controller.signal, onProgress: progress.update, device: device as "auto" | "gpu" | "cpu", data, cache,
      });
      if (this.loading !== controller) return void (await program.dispose());
      this.program = program;
      this.showProgram(name);
      announce(`${name} is ready`);
    } catch (error) {
      if (this.loading !== controller) return;
      this.loader.replaceChildren(errorCard(error, {
        ...cacheRemedies(input, (kept) => void this.load(input, data, device, kept), this.showCache),
        retry: this.reload, ...(mayUseGpu(device) && { "use-cpu": () => void this.load(input, data, "cpu") }), inspect: () => this.inspect(input, device, data),
      }));
    }
  }

  private unload(): void {
    const old = this.program;
    this.program = null;
    if (old) this.unloading = old.dispose().then(() => void (this.unloading = null));
  }

  private showProgram(name: string): void {
    const { methods, device } = this.program!.info;
    const choice = select("run-method", Object.fromEntries(methods.map((method) => [method.name, method.name])));
    choice.addEventListener("change", () => this.showMethod(methods[choice.selectedIndex]!));
    this.loader.replaceChildren(el("header", { class: "bar row" },
      el("div", { class: "named" }, el("strong", {}, name), el("small", {}, formatDevice(device)),
        ...device.fallback.map((note) => el("small", {}, note))),
      methods.length > 1 && option("run-method", "Method", choice)));
    if (methods[0]) this.showMethod(methods[0]);
  }

  private showMethod(method: MethodInfo): void {
    this.drop();
    this.start.textContent = `Run ${method.name}`;
    this.method = method;
    this.outputs = null;
    this.cards = method.inputs.map((info, i) => new InputCard(info, i));
    this.inputs.replaceChildren(...this.cards.map((card) => card.element),
      el("div", { class: "actions" },
        this.start, this.halt,
        el("button", { type: "button", class: "quiet", onclick: () => pickFiles({ accept: ".txt,.json,.csv" }, ([file]) => file && void this.takeLabels(file)) }, "Labels file")));
    this.results.replaceChildren();
  }

  /** Files that were dropped while this tab is open: a program and its weights first, then inputs of it. */
  async take(files: readonly File[]): Promise<void> {
    const { program, data, others } = sortFiles(files);
    if (program) await this.load(program, data);
    for (const file of others) {
      if (/\.(txt|json|csv)$/i.test(file.name)) await this.takeLabels(file);
      else await this.takeInput(file);
    }
  }

  private async takeInput(file: File): Promise<void> {
    const picture = file.type.startsWith("image/");
    const stem = file.name.replace(/\.[^.]*$/, "");
    // By the input's name, then the first that has nothing yet, then the first that fits.
    const fitting = this.cards.filter((card) => card.info.kind === "tensor" && (!picture || card.wantsPicture));
    const card = fitting.find((each) => each.info.name === stem) ?? fitting.find((each) => each.isEmpty) ?? fitting[0];
    if (!card) {
      const reason = this.program ? `No input of this method takes ${file.name}.` : `Load a program first; ${file.name} can be its input then.`;
      return this.results.replaceChildren(el("p", { class: "problem", role: "alert" }, reason));
    }
    await card.take(file).catch((error: Error) => card.problem(error.message));
    announce(`${file.name} is the input ${card.info.name}`);
  }

  private async takeLabels(file: File): Promise<void> {
    try {
      this.labels = parseLabels(await file.text());
      announce(`${this.labels.length} labels`);
      this.showOutputs();
    } catch {
      this.results.prepend(el("p", { class: "problem", role: "alert" }, `${file.name} is not a list of labels.`));
    }
  }

  private submit(event: Event): void {
    event.preventDefault();
    void this.run();
  }

  private async run(): Promise<void> {
    const { program, method } = this;
    if (!program || !method) return;
    this.drop();
    const controller = (this.running = new AbortController());
    this.showRunning(true);
    try {
      const values = this.cards.map((card) => card.value());
      const started = performance.now();
      const outputs = await program.run(method.name, values, { signal: controller.signal });
      if (this.running !== controller) return;
      this.outputs = outputs;
      this.showOutputs(performance.now() - started);
    } catch (error) {
      if (this.running !== controller) return;
      const known = typeof error === "object" && error !== null && "code" in error;
      const shown = known ? error : Object.assign(new Error(error instanceof Error ? error.message : String(error)), { code: "invalid-argument" });
      this.results.replaceChildren(errorCard(shown, { retry: () => void this.run(), recover: this.reload }));
    } finally {
      if (this.running === controller) {
        this.drop();
        this.results.scrollIntoView({ block: "nearest" });
      }
    }
  }

  /** Ends the run under way; nothing of it is shown any more. */
  private drop(): void {
    this.running?.abort();
    this.running = null;
    this.showRunning(false);
  }

  private showRunning(on: boolean): void {
    const held = [this.start, this.halt].some((button) => button === document.activeElement);
    this.start.disabled = on;
    this.halt.hidden = !on;
    // The button that was pressed cannot have the focus any more.
    if (held) (on ? this.halt : this.start).focus();
  }

  /** The device may still be busy with the run for a while; the next one waits for it. */
  private stop(): void {
    this.drop();
    this.outputs = null;
    this.results.replaceChildren(el("p", { class: "hint" }, "Stopped."));
    announce("Stopped");
  }

  private took = 0;

  private showOutputs(took = this.took): void {
    const { outputs, method } = this;
    if (!outputs || !method) return;
    this.took = took;
    this.results.replaceChildren(
      el("h3", { tabindex: -1 }, "Outputs ", el("small", {}, formatDuration(took))),
      ...method.outputs.map((info, i) => outputCard(info.name, outputs[i] ?? null, this.labels)));
    announce(`Finished in ${formatDuration(took)}`);
  }
}

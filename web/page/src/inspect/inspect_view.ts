// What a program holds, and how it would run here. SPDX-License-Identifier: BSD-3-Clause

import type { MethodReport, OperatorUse, ProgramReport, ValueInfo } from "../../../src/types.ts";
import { unlessAborted } from "../abort.ts";
import { byId, el, kDevices, option, select } from "../dom.ts";
import { loadEngine } from "../engine.ts";
import { formatBytes, formatCount, formatDims, plural } from "../format.ts";
import { nameOf, packageInput, type PageInput } from "../input.ts";
import { announce } from "../shell/announcer.ts";
import { cacheRemedies } from "../shell/cache_remedies.ts";
import { pickFiles, sortFiles } from "../shell/drop.ts";
import { errorCard } from "../shell/error_card.ts";
import { ProgressView } from "../shell/progress_view.ts";
import { mayUseGpu } from "../webgpu_support.ts";
import { GraphPanel } from "./graph_panel.ts";
import { table } from "./table.ts";

export class InspectView {
  private readonly outcome = el("div", { class: "outcome" });
  private readonly device = select("inspect-device", kDevices);
  private running: AbortController | null = null;

  /** `run` opens the same file in the other tab. */
  constructor(private readonly run: (input: PageInput, data?: readonly File[]) => void, private readonly showCache: () => void) {
    const address = el("input", { id: "inspect-url", type: "text", inputmode: "url", autocomplete: "off", spellcheck: "false", placeholder: "https://example.org/model.pte" });
    const submit = (event: Event): void => {
      event.preventDefault();
      if (address.value.trim() !== "") void this.inspect(address.value.trim());
    };
    byId("panel-inspect").append(el("div", { class: "page" },
      el("h2", {}, "Inspect a program"),
      el("p", { class: "lead" }, "What a .pte file holds, and how it would run on this machine. Only its tables are read, not its weights."),
      el("form", { class: "source", onsubmit: submit },
        el("label", { for: "inspect-url" }, "Address of a .pte file"),
        el("div", { class: "joined" }, address, el("button", { class: "primary" }, "Inspect"))),
      el("p", { class: "or" }, el("button", { type: "button", onclick: () => pickFiles({ multiple: true }, (files) => this.take(files)) }, "Choose a file"), el("span", { class: "by-drop" }, "or drop it anywhere on this page, with its .ptd files if it has any.")),
      option("inspect-device", "To run on", this.device),
      this.outcome));
  }

  /** Files that were dropped while this tab is open. */
  take(files: readonly File[]): void {
    const { program, data } = sortFiles(files);
    const file = program ?? files[0];
    if (file) void this.inspect(file, data);
  }

  /** `data`: its external weights; `device`: what it is to run on, in place of what was chosen before. */
  async inspect(input: PageInput, data: readonly File[] = [], device = this.device.value, cache = true): Promise<void> {
    this.device.value = device;
    this.running?.abort();
    const controller = (this.running = new AbortController());
    const name = nameOf(input);
    const progress = new ProgressView(name, () => controller.abort());
    this.outcome.replaceChildren(progress.element);
    try {
      const { inspectProgram } = await unlessAborted(loadEngine(), controller.signal);
      const report = await inspectProgram(packageInput(input), { signal: controller.signal, onProgress: progress.update, device: device as "auto" | "gpu" | "cpu", data, cache });
      if (this.running !== controller) return;
      this.outcome.replaceChildren(this.report(report, name, () => this.run(input, data)));
      announce(`${name}: ${plural(report.methods.length, "method")}`);
    } catch (error) {
      if (this.running !== controller) return;
      this.outcome.replaceChildren(errorCard(error, {
        ...cacheRemedies(input, (kept) => void this.inspect(input, data, device, kept), this.showCache),
        retry: () => void this.inspect(input, data), ...(mayUseGpu(device) && { "use-cpu": () => void this.inspect(input, data, "cpu") }),
      }));
    }
  }

  private report(report: ProgramReport, name: string, run: () => void): HTMLElement {
    const methods = report.methods.filter((method) => !method.metadata);
    const body = el("div", {});
    const show = (method: MethodReport): void => body.replaceChildren(methodView(method));
    const choice = el("select", { id: "inspect-method", onchange: () => show(methods[choice.selectedIndex]!) },
      ...methods.map((method) => el("option", {}, method.name)));
    if (methods[0]) show(methods[0]);
    return el("article", { class: "report", "aria-label": `Report on ${name}` },
      el("header", { class: "row" },
        el("h3", {}, name, " ", el("small", {}, formatBytes(report.fileBytes))),
        methods.length > 1 && el("div", { class: "option" }, el("label", { for: "inspect-method" }, "Method"), choice),
        el("button", { type: "button", onclick: run }, "Run it")),
      el("p", { class: "hint" }, [`Planned for ${report.device.kind === "gpu" ? `the GPU ${report.device.name}` : "the CPU"}.`, ...report.device.fallback].join(" ")),
      body, metadata(report));
  }
}

/** Methods without instructions: constants that a program carries about itself. */
function metadata(report: ProgramReport): HTMLElement | null {
  const found = report.methods.filter((method) => method.metadata);
  if (found.length === 0) return null;
  return el("details", {}, el("summary", {}, plural(found.length, "constant")),
    table("Constants", ["Name", "Value"], found.map((method) => [method.name, (method.values ?? []).map((value) => short(String(value))).join(", ")])));
}

function short(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}… (${formatCount(text.length)} characters)` : text;
}

function methodView(method: MethodReport): HTMLElement {
  return el("div", { class: "method" },
    verdict(method),
    el("section", {}, el("h4", {}, "Inputs and outputs"), values(method)),
    el("section", {}, el("h4", {}, "Operators"), operators(method.operators)),
    el("section", {}, el("h4", {}, "Memory"), memory(method)),
    new GraphPanel(method).element,
    weights(method));
}

/** The answer to the question most people come with. */
export function verdict(method: MethodReport): HTMLElement {
  const sum = (of: (use: OperatorUse) => number): number => method.operators.reduce((n, use) => n + of(use), 0);
  const [gpu, cpu, free, unsupported] = [sum((u) => u.gpu), sum((u) => u.cpu), sum((u) => u.free), sum((u) => u.unsupported)];
  const problems = [...method.excess, ...(method.problem === "" ? [] : method.problem.split("\n"))];
  if (problems.length > 0 || unsupported > 0) {
    return el("div", { class: "card error verdict", "data-verdict": "no" }, el("h4", {}, `'${method.name}' cannot run here`),
      el("ul", {}, ...problems.map((problem) => el("li", {}, problem))),
      unsupported > 0 && problems.length === 0 && el("p", {}, `${plural(unsupported, "operator")} not supported.`));
  }
  const parts = [gpu > 0 && `${formatCount(gpu)} on the GPU`, cpu > 0 && `${formatCount(cpu)} on the CPU`, free > 0 && `${formatCount(free)} need no work`].filter(Boolean);
  return el("div", { class: "card verdict", "data-verdict": "yes" }, el("h4", {}, `'${method.name}' runs here`), el("p", {}, `Operators: ${parts.join(", ") || "none"}. Memory: ${formatBytes(method.memory.total || method.memory.host)}.`));
}

function describe(value: ValueInfo): string[] {
  if (value.kind !== "tensor") return [value.kind, value.value === undefined ? "" : String(value.value)];
  return [value.dtype ?? "", value.dims ? formatDims(value.dims, value.dynamic) : ""];
}

function values(method: MethodReport): HTMLElement {
  const rows = (direction: string, list: readonly ValueInfo[]): string[][] => list.map((value) => [direction, value.name, ...describe(value)]);
  return table("Inputs and outputs", ["", "Name", "Type", "Shape"], [...rows("in", method.inputs), ...rows("out", method.outputs)]);
}

function operators(uses: readonly OperatorUse[]): HTMLElement {
  const sorted = [...uses].sort((a, b) => b.unsupported - a.unsupported || b.count - a.count);
  const where = (use: OperatorUse): HTMLElement => {
    const parts = (["gpu", "cpu", "free", "unsupported"] as const).filter((place) => use[place] > 0);
    const words = { gpu: "GPU", cpu: "CPU", free: "free", unsupported: "not supported" };
    return el("span", { class: "places" }, ...parts.map((place) => el("span", { class: `place ${place}` }, use[place] === use.count ? words[place] : `${use[place]} ${words[place]}`)));
  };
  return table("Operators", ["Operator", "Count", "Where"], sorted.map((use) => [use.name, formatCount(use.count), where(use)]), [1]);
}

const kMemory = { constants: "Weights and constants", state: "State, such as KV caches", activations: "Activations", scratch: "Scratch", transfer: "Transfer", host: "In the page's memory" } as const;

function memory({ memory: sizes }: MethodReport): HTMLElement {
  const parts = (Object.keys(kMemory) as (keyof typeof kMemory)[]).filter((part) => sizes[part] > 0);
  const most = Math.max(1, ...parts.map((part) => sizes[part]));
  return table("Memory", ["What", "Size", ""],
    [...parts.map((part) => [kMemory[part], formatBytes(sizes[part]), el("meter", { min: 0, max: most, value: sizes[part], "aria-hidden": "true" })]),
      ...(sizes.total > 0 ? [["On the device in all", formatBytes(sizes.total), ""]] : [])], [1]);
}

function weights(method: MethodReport): HTMLElement | null {
  if (method.weights.length === 0) return null;
  const rows = [...method.weights].sort((a, b) => b.bytes - a.bytes);
  const total = rows.reduce((n, weight) => n + weight.bytes, 0);
  return el("details", {}, el("summary", {}, `${plural(rows.length, "weight")}, ${formatBytes(total)}`),
    table("Weights", ["Name", "Type", "Shape", "Size"], rows.map((weight) => [weight.name + (weight.state ? " (state)" : ""), weight.dtype, formatDims(weight.dims), formatBytes(weight.bytes)]), [3]));
}

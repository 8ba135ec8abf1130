// Elements in one expression. SPDX-License-Identifier: BSD-3-Clause
// The page has three views and few shared states; a framework would weigh more than the lines it saves here. Text only ever enters the
// document as text nodes and attributes, never as HTML.

type Child = Node | string | null | undefined | false;
type Handlers = { [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void };
type Attributes = { [name: string]: string | number | boolean | null | undefined | ((event: never) => void) };

/** `el("button", { class: "quiet", onclick: copy }, "Copy")`. `true` sets a bare attribute; `false`, `null` and `undefined` leave it out. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Handlers & Attributes = {}, ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else setAttribute(element, name, value);
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}

export function setAttribute(element: Element, name: string, value: string | number | boolean | null | undefined): void {
  if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** The element with that id, which index.html has. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`index.html has no element with the id '${id}'`);
  return found as T;
}

const kSvg = "http://www.w3.org/2000/svg";

export function svg(tag: string, attributes: Record<string, string | number> = {}, ...children: readonly (Node | string)[]): SVGElement {
  const element = document.createElementNS(kSvg, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A line icon of 24 × 24 units; the path is its drawing. */
export function icon(path: string): SVGElement {
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: path }));
}

/** Puts text on the clipboard; the button says for a moment whether that worked. */
export function copyButton(text: () => string, label = "Copy"): HTMLButtonElement {
  const button = el("button", {
    type: "button",
    class: "quiet",
    onclick: () => {
      navigator.clipboard.writeText(text()).then(() => say("Copied"), () => say("Not allowed"));
    },
  }, label);
  const say = (word: string): void => {
    button.textContent = word;
    setTimeout(() => (button.textContent = label), 1500);
  };
  return button;
}

/** Saves bytes as a file. */
export function download(name: string, bytes: BlobPart, type = "application/octet-stream"): void {
  const url = URL.createObjectURL(new Blob([bytes], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** What a program or model can be run on, as the package names it. */
export const kDevices = { auto: "GPU, or CPU without one", gpu: "GPU", cpu: "CPU" } as const;

/** A list to choose from: value to text. */
export function select(id: string, choices: Readonly<Record<string, string>>): HTMLSelectElement {
  return el("select", { id }, ...Object.entries(choices).map(([value, text]) => el("option", { value }, text)));
}

/** A control with its label beside it. */
export function option(id: string, label: string, control: HTMLElement): HTMLElement {
  return el("div", { class: "option" }, el("label", { for: id }, label), control);
}

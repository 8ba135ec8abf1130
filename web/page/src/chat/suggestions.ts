// Models that whoever put the page up suggests: the list in models.json beside it. SPDX-License-Identifier: BSD-3-Clause

import { el } from "../dom.ts";
import { formatBytes } from "../format.ts";

/** One entry of models.json. `url` may be relative to the page. */
export interface Suggestion {
  readonly name: string;
  readonly url: string;
  readonly bytes?: number;
  readonly about?: string;
}

/** What of a list can be used. */
export function readSuggestions(value: unknown): Suggestion[] {
  if (!Array.isArray(value)) return [];
  return (value as Partial<Record<keyof Suggestion, unknown>>[]).flatMap((entry): Suggestion[] => {
    if (typeof entry?.name !== "string" || typeof entry.url !== "string") return [];
    const { name, url, bytes, about } = entry;
    return [{ name, url, ...(typeof bytes === "number" && { bytes }), ...(typeof about === "string" && { about }) }];
  });
}

/** Is there when the list is; stays empty where there is none. */
export class Suggestions {
  readonly element = el("section", { class: "cache", "aria-labelledby": "suggestions-title", hidden: true });

  constructor(private readonly load: (url: string) => void) {
    void this.fetch();
  }

  private async fetch(): Promise<void> {
    const found = await fetch("models.json").then((response) => (response.ok ? response.json() : []) as unknown, () => []).then(readSuggestions, () => []);
    this.element.replaceChildren(
      el("h3", { id: "suggestions-title" }, "Suggested models"),
      el("ul", {}, ...found.map((model) => this.row(model))));
    this.element.hidden = found.length === 0;
  }

  private row({ name, url, bytes, about }: Suggestion): HTMLElement {
    const detail = [bytes === undefined ? "" : formatBytes(bytes), about ?? ""].filter(Boolean).join(" · ");
    return el("li", { class: "row" },
      el("div", { class: "named" }, el("strong", {}, name), el("small", {}, detail)),
      el("button", { type: "button", "aria-label": `Load ${name}`, onclick: () => this.load(url) }, "Load"));
  }
}

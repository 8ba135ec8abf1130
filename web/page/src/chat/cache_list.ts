// Models that the browser has kept. SPDX-License-Identifier: BSD-3-Clause

import type { CacheEntry } from "../../../src/index.ts";
import { el } from "../dom.ts";
import { loadEngine } from "../engine.ts";
import { formatAgo, formatBytes } from "../format.ts";
import { nameOf, type PageInput } from "../input.ts";
import { announce } from "../shell/announcer.ts";
import { errorCard } from "../shell/error_card.ts";

export class CacheList {
  readonly element = el("section", { class: "cache", "aria-labelledby": "cache-title", hidden: true });

  constructor(private readonly load: (input: PageInput) => void) {}

  /** Reads the cache again; leaves out the whole section where nothing is kept. */
  async refresh(): Promise<void> {
    try {
      const { cache } = await loadEngine();
      this.show(await cache.list(), await cache.estimate());
    } catch (error) {
      this.element.hidden = false;
      this.element.replaceChildren(errorCard(error, { retry: () => void this.refresh() }));
    }
  }

  focus(): void {
    document.getElementById("cache-title")?.focus();
  }

  private show(entries: readonly CacheEntry[], room: { usedBytes: number; freeBytes: number } | undefined): void {
    const held = this.element.contains(document.activeElement);
    const title = el("h3", { id: "cache-title", tabindex: -1 }, "On this device");
    this.element.hidden = entries.length === 0;
    this.element.replaceChildren(
      title,
      el("ul", {}, ...entries.map((entry) => this.row(entry))),
      room ? el("p", { class: "hint" }, `${formatBytes(room.usedBytes)} in use, room for ${formatBytes(room.freeBytes)} more.`) : "");
    // The button that had the focus is gone with its row.
    if (held && entries.length > 0) title.focus();
  }

  private row(entry: CacheEntry): HTMLElement {
    // A conversion of a dropped file has only the file's name.
    const input = /^https?:/.test(entry.url) ? entry.url : entry;
    const name = nameOf(input);
    const size = entry.complete ? formatBytes(entry.size) : `${formatBytes(entry.presentBytes)} of ${Number.isFinite(entry.size) ? formatBytes(entry.size) : "?"}`;
    const detail = [size, entry.kind === "conversion" ? "converted" : "", formatAgo(entry.lastUsed.getTime(), Date.now())].filter(Boolean).join(" · ");
    const remove = async (): Promise<void> => {
      try {
        await (await loadEngine()).cache.delete(entry.url);
      } catch (error) {
        this.element.querySelector(".card.error")?.remove();
        return this.element.append(errorCard(error, { retry: () => void remove() }));
      }
      announce(`${name} deleted`);
      await this.refresh();
    };
    return el("li", { class: "row" },
      el("div", { class: "named" }, el("strong", { title: entry.url }, name), el("small", {}, detail)),
      el("button", { type: "button", "aria-label": `${entry.complete ? "Load" : "Continue"} ${name}`, onclick: () => this.load(input) }, entry.complete ? "Load" : "Continue"),
      el("button", { type: "button", class: "quiet", "aria-label": `Delete ${name}`, onclick: () => void remove() }, "Delete"));
  }
}

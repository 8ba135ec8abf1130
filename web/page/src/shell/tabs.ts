// Three tabs: arrow keys move between them, the address remembers which. SPDX-License-Identifier: BSD-3-Clause

import { byId } from "../dom.ts";

export const kTabs = ["chat", "inspect", "run"] as const;
export type TabName = (typeof kTabs)[number];

export class Tabs {
  private current: TabName = "chat";
  private readonly listeners: ((tab: TabName) => void)[] = [];

  constructor() {
    for (const [i, name] of kTabs.entries()) {
      const tab = byId(`tab-${name}`);
      tab.addEventListener("click", () => this.show(name));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const to = event.key === "Home" ? 0 : event.key === "End" ? kTabs.length - 1 : step === undefined ? -1 : (i + step + kTabs.length) % kTabs.length;
        if (to < 0) return;
        event.preventDefault();
        this.show(kTabs[to]!);
        byId(`tab-${kTabs[to]!}`).focus();
      });
    }
    const fromAddress = (): void => {
      const name = kTabs.find((tab) => location.hash === `#${tab}`);
      if (name && name !== this.current) this.show(name);
    };
    window.addEventListener("hashchange", fromAddress);
    fromAddress();
  }

  get active(): TabName {
    return this.current;
  }

  onShow(listener: (tab: TabName) => void): void {
    this.listeners.push(listener);
  }

  show(name: TabName): void {
    this.current = name;
    for (const each of kTabs) {
      const tab = byId(`tab-${each}`);
      tab.setAttribute("aria-selected", String(each === name));
      tab.tabIndex = each === name ? 0 : -1;
      byId(`panel-${each}`).hidden = each !== name;
    }
    if (location.hash !== `#${name}` && (name !== "chat" || location.hash !== "")) {
      history.replaceState(null, "", name === "chat" ? location.pathname + location.search : `#${name}`);
    }
    for (const listener of this.listeners) listener(name);
  }
}

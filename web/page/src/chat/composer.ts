// Where questions are written. SPDX-License-Identifier: BSD-3-Clause

import { el, icon } from "../dom.ts";

const kSend = "M12 19V5M6 11l6-6 6 6";
const kStop = "M7 7h10v10H7z";

export class Composer {
  private readonly input = el("textarea", { id: "question", rows: 1, placeholder: "Ask something", "aria-label": "Your message", enterkeyhint: "send", autocomplete: "off" });
  private readonly button = el("button", { type: "submit", class: "primary round" });
  private readonly hint = el("p", { class: "hint", hidden: true });
  readonly element: HTMLFormElement;
  private busy = false;
  private enabled = false;

  constructor(private readonly events: { send: (text: string) => void; stop: () => void; cancelEdit: () => void }) {
    this.element = el("form", { class: "composer", "aria-label": "Message", onsubmit: (event) => this.submit(event) }, this.hint, el("div", { class: "field" }, this.input, this.button));
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("input", () => this.fit());
    this.show();
  }

  /** `reason`: why nothing can be sent now. */
  enable(on: boolean, reason = ""): void {
    this.enabled = on;
    this.input.placeholder = on ? "Ask something" : reason;
    this.show();
  }

  setBusy(on: boolean): void {
    this.busy = on;
    this.show();
  }

  edit(text: string): void {
    this.input.value = text;
    this.hint.hidden = false;
    this.hint.textContent = "Editing: this message and everything after it will be replaced. Press Escape to cancel.";
    this.fit();
    this.focus();
  }

  clear(): void {
    this.input.value = "";
    this.hint.hidden = true;
    this.fit();
  }

  focus(): void {
    this.input.focus({ preventScroll: true });
  }

  private submit(event: Event): void {
    event.preventDefault();
    if (this.busy) return this.events.stop();
    const text = this.input.value.trim();
    if (text === "" || !this.enabled) return;
    this.clear();
    this.events.send(text);
  }

  private key(event: KeyboardEvent): void {
    // Enter also ends a composition of an input method; that is no wish to send.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (!this.busy) this.element.requestSubmit();
    } else if (event.key === "Escape" && !this.hint.hidden) {
      this.clear();
      this.events.cancelEdit();
    }
  }

  private show(): void {
    this.button.replaceChildren(icon(this.busy ? kStop : kSend));
    this.button.setAttribute("aria-label", this.busy ? "Stop" : "Send");
    this.button.title = this.busy ? "Stop (Escape)" : "Send (Enter)";
    this.button.disabled = !this.busy && !this.enabled;
  }

  private fit(): void {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 200)}px`;
  }
}

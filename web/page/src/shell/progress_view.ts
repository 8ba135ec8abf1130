// A bar with bytes, what is being done, and a way out. SPDX-License-Identifier: BSD-3-Clause

import type { Progress } from "../../../src/types.ts";
import { unlessAborted } from "../abort.ts";
import { el } from "../dom.ts";
import { formatBytesOf, formatDuration } from "../format.ts";
import { announce } from "./announcer.ts";

const kPhases: Readonly<Record<Progress["phase"], string>> = {
  download: "Reading the file",
  convert: "Converting the model",
  upload: "Loading weights",
  compile: "Preparing the GPU",
};

const kStarting = "Starting";

export class ProgressView {
  private readonly bar = el("progress", { max: 1, "aria-label": "Progress" });
  private readonly phase = el("span", { class: "phase" }, kStarting);
  private readonly bytes = el("span", { class: "bytes" });
  readonly element: HTMLElement;
  private announced = 0;
  private readonly started = performance.now();

  constructor(title: string, cancel: () => void) {
    this.element = el("section", { class: "card progress", "aria-label": title },
      el("h3", {}, title), this.bar,
      el("div", { class: "row" }, el("p", {}, this.phase, " ", this.bytes), el("button", { type: "button", onclick: cancel }, "Cancel")));
  }

  /** Says what a load waits for before it starts. Rejects at once where `signal` is aborted. */
  async waitFor(what: string, done: Promise<unknown>, signal: AbortSignal): Promise<void> {
    this.phase.textContent = what;
    await unlessAborted(done, signal);
    this.phase.textContent = kStarting;
  }

  readonly update = (progress: Progress): void => {
    this.bar.value = progress.fraction;
    this.phase.textContent = kPhases[progress.phase];
    const done = progress.doneBytes > 0 || progress.totalBytes > 0 ? formatBytesOf(progress.doneBytes, progress.totalBytes) : "";
    this.bytes.textContent = [done, this.remaining(progress.fraction)].filter(Boolean).join(", ");
    // A quarter at a time is enough to hear.
    if (progress.fraction >= this.announced + 0.25) {
      this.announced = Math.floor(progress.fraction * 4) / 4;
      announce(`${kPhases[progress.phase]}: ${Math.round(progress.fraction * 100)} %`);
    }
  };

  private remaining(fraction: number): string {
    const elapsed = performance.now() - this.started;
    if (elapsed < 3000 || fraction < 0.02 || fraction >= 1) return "";
    return `about ${formatDuration(Math.max(1000, (elapsed * (1 - fraction)) / fraction)).replace(/\.\d s/, " s")} left`;
  }
}

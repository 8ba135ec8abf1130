// Restarting the device of a model, in sight, until it works or another model is chosen. SPDX-License-Identifier: BSD-3-Clause

import type { Model } from "../../../src/types.ts";
import { el } from "../dom.ts";
import { errorCard, type Remedies } from "../shell/error_card.ts";
import { ProgressView } from "../shell/progress_view.ts";

export class Recovery {
  readonly element = el("div", { class: "recovery" });
  private running: AbortController | null = null;

  /** From the start of a restart to its success: the model cannot answer. */
  get pending(): boolean {
    return this.element.childElementCount > 0;
  }

  /** False where it failed, which is shown with what `remedies` offers, or where `clear` was called. */
  async run(model: Model, remedies: Remedies): Promise<boolean> {
    this.clear();
    const controller = (this.running = new AbortController());
    const progress = new ProgressView("Restarting the GPU", () => controller.abort());
    this.show(progress.element);
    try {
      await model.recover({ signal: controller.signal, onProgress: progress.update });
      if (this.running !== controller) return false;
      this.clear();
      return true;
    } catch (error) {
      if (this.running === controller) this.show(errorCard(error, remedies));
      return false;
    }
  }

  /** Stops what is under way, and shows nothing any more. */
  clear(): void {
    this.running?.abort();
    this.running = null;
    this.element.replaceChildren();
  }

  private show(card: HTMLElement): void {
    this.element.replaceChildren(card);
    card.scrollIntoView({ block: "nearest" });
  }
}

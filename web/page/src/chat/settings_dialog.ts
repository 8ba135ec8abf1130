// System prompt and sampling, in a sheet that Escape closes. SPDX-License-Identifier: BSD-3-Clause

import { el } from "../dom.ts";
import { clampSetting, kSampling, readSeed, readSettings, type SamplingName, type Settings, type Store } from "../storage.ts";

export class SettingsDialog {
  private current: Settings;
  private readonly dialog = el("dialog", { class: "sheet", "aria-labelledby": "settings-title" });

  constructor(private readonly store: Store) {
    this.current = store.get("settings", readSettings);
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    this.fill();
  }

  get element(): HTMLElement {
    return this.dialog;
  }

  get settings(): Settings {
    return this.current;
  }

  open(): void {
    this.dialog.showModal();
  }

  private change(part: Partial<Settings>): void {
    this.current = { ...this.current, ...part };
    this.store.set("settings", this.current);
  }

  private fill(): void {
    const system = el("textarea", {
      id: "setting-system", rows: 4, placeholder: "You are a helpful assistant.", "aria-describedby": "hint-system",
      oninput: () => this.change({ system: system.value }),
    });
    system.value = this.current.system;
    const seed = el("input", {
      id: "setting-seed", type: "number", min: 0, max: 0xffffffff, step: 1, placeholder: "new for each answer", "aria-describedby": "hint-seed",
      onchange: () => this.change({ seed: seed.value === "" ? null : readSeed(Number(seed.value)) }),
    });
    seed.value = this.current.seed === null ? "" : String(this.current.seed);
    const reset = (): void => {
      this.change({ ...readSettings(null), system: this.current.system });
      this.fill();
    };
    this.dialog.replaceChildren(
      el("form", { method: "dialog" },
        el("header", { class: "row" }, el("h2", { id: "settings-title" }, "Settings"), el("button", { class: "quiet", "aria-label": "Close settings" }, "Close")),
        field("system", "System prompt", "Instructions given to the model before the conversation.", system),
        ...(Object.keys(kSampling) as SamplingName[]).map((name) => this.slider(name)),
        field("seed", "Seed", "The same seed and settings give the same answer.", seed),
        el("button", { type: "button", onclick: reset }, "Reset sampling")));
  }

  /** A number and a slider that say the same; the slider spares typing, the number is exact. */
  private slider(name: SamplingName): HTMLElement {
    const setting = kSampling[name];
    const number = el("input", { id: `setting-${name}`, type: "number", min: setting.min, max: setting.max, step: setting.step, "aria-describedby": `hint-${name}` });
    const range = el("input", { type: "range", min: setting.min, max: Math.min(setting.max, 4096), step: setting.step, "aria-label": setting.label, tabindex: -1 });
    const show = (value: number): void => {
      number.value = String(value);
      range.value = String(value);
    };
    const take = (text: string): void => {
      this.change({ [name]: clampSetting(setting, text === "" ? NaN : Number(text)) });
      show(this.current[name]);
    };
    number.addEventListener("change", () => take(number.value));
    range.addEventListener("input", () => take(range.value));
    show(this.current[name]);
    return field(name, setting.label, setting.hint, el("div", { class: "slider" }, range, number));
  }
}

function field(name: string, label: string, hint: string, control: HTMLElement): HTMLElement {
  return el("div", { class: "field" }, el("label", { for: `setting-${name}` }, label), control, el("p", { class: "hint", id: `hint-${name}` }, hint));
}

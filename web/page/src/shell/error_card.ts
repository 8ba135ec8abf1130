// A failure as a person reads it: what, why, what next. SPDX-License-Identifier: BSD-3-Clause

import { copyButton, el } from "../dom.ts";
import { type Failure, failureOf, type Remedy } from "../error_texts.ts";

const kLabels: Readonly<Record<Remedy, string>> = {
  retry: "Try again",
  recover: "Restart the GPU",
  "manage-cache": "Show the cache",
  inspect: "Inspect the file",
  "use-cpu": "Run on the CPU",
  "new-chat": "New chat",
  "without-cache": "Load without caching it",
  "download-again": "Download it again",
  unload: "Unload the model and try again",
  reload: "Reload the page",
};

export type Remedies = Partial<Record<Remedy, () => void>>;

/** The card has a button for each remedy of the failure that `remedies` can offer; `labels` replace theirs. `code` is in `data-code`. */
export function errorCard(error: unknown, remedies: Remedies = {}, labels: Partial<Record<Remedy, string>> = {}): HTMLElement {
  const failure: Failure = failureOf(error);
  const offered: Remedies = { reload: () => location.reload(), ...remedies };
  const buttons = failure.remedies.filter((remedy) => offered[remedy]).map((remedy, i) =>
    el("button", { type: "button", class: i === 0 ? "primary" : "", onclick: () => offered[remedy]!() }, labels[remedy] ?? kLabels[remedy]));
  const message = failure.message.trim();
  return el("section", { class: "card error", role: "alert", "data-code": failure.code },
    el("h3", {}, failure.title),
    el("p", {}, failure.next),
    message !== "" && el("pre", { class: "message", tabindex: 0, "aria-label": "Message" }, message),
    el("div", { class: "actions" }, ...buttons, message !== "" && copyButton(() => `${failure.code}: ${message}`, "Copy message")));
}

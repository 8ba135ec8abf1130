// One message of the conversation. SPDX-License-Identifier: BSD-3-Clause

import { copyButton, el } from "../dom.ts";
import { formatDuration, formatRate, plural } from "../format.ts";
import { MarkdownView } from "../markdown/render.ts";
import { announce } from "../shell/announcer.ts";
import type { AnswerFacts, Turn } from "../storage.ts";

export function questionView(turn: Turn, edit: () => void): HTMLElement {
  return el("article", { class: "turn question", "aria-label": "You" },
    el("div", { class: "bubble" }, turn.content),
    el("div", { class: "tools" }, el("button", { type: "button", class: "quiet", onclick: edit }, "Edit"), copyButton(() => turn.content)));
}

const kEndings: Readonly<Record<string, string>> = {
  length: "Stopped at the maximum answer length (see Settings).",
  context: "The context is full: start a new chat, or delete earlier turns by editing.",
  cancelled: "Stopped.",
};

/** An answer, while it is being written and afterwards. */
export class AnswerView {
  private readonly body = el("div", { class: "markdown" });
  private readonly markdown = new MarkdownView(this.body);
  private readonly facts = el("p", { class: "facts" });
  private readonly note = el("p", { class: "note", hidden: true });
  readonly tools = el("div", { class: "tools" });
  readonly element = el("article", { class: "turn answer", "aria-label": "Answer" }, this.body, this.note, el("div", { class: "row" }, this.tools, this.facts));
  private text = "";
  private frame = 0;
  private spoken = 0;

  constructor(turn?: Turn) {
    if (!turn) return;
    this.text = turn.content;
    this.finish(turn);
  }

  /** At most once a frame, however fast tokens come. */
  write(text: string): void {
    this.text = text;
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  /** What the answer is doing before its first token, or how fast it goes. */
  status(text: string): void {
    this.facts.textContent = text;
  }

  busy(on: boolean): void {
    this.element.setAttribute("aria-busy", String(on));
    this.element.classList.toggle("writing", on);
  }

  private draw(): void {
    this.frame = 0;
    const blocks = this.markdown.update(this.text);
    for (; this.spoken < blocks.length - 1; this.spoken++) announce(blocks[this.spoken]!.source);
  }

  /** Shows the rest and how it went; `speak`: the rest is announced too. */
  finish(turn: Turn, speak = false): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.text = turn.content;
    const rest = this.markdown.update(this.text).slice(this.spoken);
    if (speak) announce(rest.map((block) => block.source).join("\n") || "The answer is empty");
    this.busy(false);
    const ending = turn.facts && kEndings[turn.facts.reason];
    this.note.hidden = !ending;
    this.note.textContent = ending ?? "";
    if (turn.facts) {
      this.facts.textContent = factsText(turn.facts);
      this.facts.title = `${plural(turn.facts.promptTokens, "prompt token")}, seed ${turn.facts.seed}`;
    } else this.facts.textContent = "";
  }

  /** The buttons below the answer; only the last answer can be written again. */
  offer(regenerate: (() => void) | null): void {
    this.tools.replaceChildren();
    if (this.text === "") return;
    this.tools.append(copyButton(() => this.text));
    if (regenerate) this.tools.append(el("button", { type: "button", class: "quiet", onclick: regenerate }, "Regenerate"));
  }
}

export function factsText(facts: AnswerFacts): string {
  return `${formatRate(facts.tokensPerSecond)} tokens/s · first token ${formatDuration(facts.firstTokenMs)} · ${plural(facts.tokens, "token")}`;
}

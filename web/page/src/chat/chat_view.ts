// The chat: a model, a conversation, and answers as they are written. SPDX-License-Identifier: BSD-3-Clause

import type { Generation, Model } from "../../../src/types.ts";
import { byId, el } from "../dom.ts";
import { formatCount, formatDevice, formatRate } from "../format.ts";
import { nameOf, type PageInput } from "../input.ts";
import { announce } from "../shell/announcer.ts";
import { errorCard, type Remedies } from "../shell/error_card.ts";
import { type AnswerFacts, generateOptions, messagesOf, readTurns, type Store, type Turn } from "../storage.ts";
import { Composer } from "./composer.ts";
import { AnswerView, questionView } from "./message_view.ts";
import { ModelPanel, type ModelPanelEvents } from "./model_panel.ts";
import { Recovery } from "./recovery.ts";
import { SettingsDialog } from "./settings_dialog.ts";
import { starters } from "./starters.ts";

const kNoModel = "Load a model first";

/** An answer that is being written. */
interface Writing {
  abort(): void;
  /** Keeps in the conversation what is there so far. */
  keep(): void;
}

export class ChatView {
  private model: Model | null = null;
  /** Where the model came from. */
  private input: PageInput = "";
  private turns: Turn[];
  /** Where a question that is being edited stands; its turn and those after it go when it is sent. */
  private editing = -1;
  private writing: Writing | null = null;
  private lastAnswer: AnswerView | null = null;
  readonly panel: ModelPanel;
  private readonly settings: SettingsDialog;
  private readonly bar = el("header", { class: "bar", hidden: true });
  private readonly log = el("div", { class: "log", role: "log", "aria-label": "Conversation", "aria-live": "off", tabindex: 0 });
  private readonly recovery = new Recovery();
  private readonly composer: Composer;

  /** `session`: of this tab alone, which keeps its conversation there; what is in `store` is that of a new tab. */
  constructor(private readonly store: Store, private readonly session: Store, private readonly inspect: ModelPanelEvents["inspect"]) {
    this.turns = session.get("turns", (value) => (value === null ? null : readTurns(value))) ?? store.get("turns", readTurns);
    this.settings = new SettingsDialog(store);
    this.composer = new Composer({ send: (text) => this.send(text), stop: () => this.stop(), cancelEdit: () => (this.editing = -1) });
    this.panel = new ModelPanel({
      inspect,
      attention: () => this.showPanel(true),
      inUse: () => this.model && nameOf(this.input),
      unload: () => this.unload(),
      loaded: (model, input) => {
        session.set("model", typeof input === "string" ? { url: new URL(input, document.baseURI).href } : null);
        void this.use(model, input);
      },
    });
    const view = byId("panel-chat");
    view.append(this.bar, el("div", { class: "scroller" }, this.panel.element, this.log, this.recovery.element), this.composer.element, this.settings.element);
    // Wherever the focus is: the button that it was on may be gone.
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.writing && !view.hidden && !document.querySelector("dialog[open]")) this.stop();
    });
    this.composer.enable(false, kNoModel);
    this.drawTurns();
  }

  private async use(model: Model, input: PageInput): Promise<void> {
    this.interrupt();
    this.recovery.clear();
    const old = this.model;
    this.model = model;
    this.input = input;
    this.showPanel(false);
    this.panel.showInUse(true);
    // Only text can be asked: without a tokenizer there is nothing to say to the model.
    this.composer.enable(model.info.hasTokenizer, "This model has no tokenizer");
    this.composer.focus();
    this.drawTurns();
    await this.drawBar();
    await old?.dispose();
  }

  /** The conversation stays: the next model continues it. */
  private async unload(): Promise<void> {
    this.interrupt();
    this.recovery.clear();
    const old = this.model;
    this.model = null;
    this.bar.hidden = true;
    this.panel.showInUse(false);
    this.composer.enable(false, kNoModel);
    this.drawTurns();
    await old?.dispose();
  }

  private async drawBar(): Promise<void> {
    const model = this.model;
    if (!model) return;
    const device = await model.device().catch(() => model.info.device);
    if (this.model !== model) return;
    const facts = [formatDevice(device), `context ${formatCount(model.info.context)}`];
    const notes = [
      ...(model.info.hasTokenizer ? [] : ["The file has no tokenizer: choose one under Change model, Options, and load it again."]), ...device.fallback, ...(model.info.hasChatTemplate ? [] : ["The model has no chat template: it continues your text."]),
    ];
    const line = el("small", { class: "device-facts" }, facts.join(" · "));
    this.bar.hidden = false;
    this.bar.replaceChildren(
      el("div", { class: "named" }, el("strong", {}, nameOf(this.input)), notes.length === 0 ? line
        : el("details", { class: "notes", open: !model.info.hasTokenizer }, el("summary", { title: "How it runs" }, line), el("ul", {}, ...notes.map((note) => el("li", {}, note))))),
      el("div", { class: "actions" },
        el("button", { type: "button", class: "quiet", onclick: () => this.newChat() }, "New chat"),
        el("button", { type: "button", class: "quiet", onclick: () => this.settings.open() }, "Settings"),
        el("button", { type: "button", class: "quiet", "aria-expanded": String(!this.panel.element.hidden), "aria-controls": "model-panel", onclick: () => this.changeModel() }, "Change model")));
  }

  private changeModel(): void {
    this.showPanel(this.panel.element.hidden !== false);
    if (this.panel.element.hidden) return;
    this.panel.refresh();
    byId("model-url").focus();
  }

  showCache(): void {
    this.showPanel(true);
    void this.panel.showCache();
  }

  private showPanel(shown: boolean): void {
    this.panel.element.hidden = !shown;
    this.bar.querySelector("[aria-controls=model-panel]")?.setAttribute("aria-expanded", String(shown));
    if (shown) this.panel.element.scrollIntoView({ block: "start" });
  }

  private newChat(): void {
    this.interrupt();
    this.turns = [];
    this.editing = -1;
    this.save();
    this.drawTurns();
    this.composer.clear();
    this.composer.focus();
    announce("New chat");
  }

  private save(): void {
    this.session.set("turns", this.turns);
    this.store.set("turns", this.turns.length > 0 ? this.turns : null);
  }

  private drawTurns(): void {
    this.lastAnswer = null;
    this.log.replaceChildren(...this.turns.map((turn, i) => {
      if (turn.role === "user") return questionView(turn, () => this.edit(i));
      const view = new AnswerView(turn);
      view.offer(null);
      this.lastAnswer = view;
      return view.element;
    }));
    if (this.turns.length === 0 && this.model?.info.hasChatTemplate && !this.recovery.pending) this.log.append(starters((question) => this.send(question)));
    this.log.hidden = this.log.childElementCount === 0;
    this.offerTools();
    // Without a model, choosing one comes first.
    if (this.model) this.scrollDown(true);
  }

  private offerTools(): void {
    this.lastAnswer?.offer(this.model && !this.writing && !this.recovery.pending ? () => this.regenerate() : null);
  }

  private edit(at: number): void {
    this.stop();
    this.editing = at;
    this.composer.edit(this.turns[at]!.content);
  }

  private send(text: string): void {
    this.interrupt();
    this.composer.focus();
    if (this.editing >= 0) this.turns.length = this.editing;
    this.editing = -1;
    this.turns.push({ role: "user", content: text });
    this.drawTurns();
    void this.answer();
  }

  private regenerate(): void {
    this.interrupt();
    while (this.turns[this.turns.length - 1]?.role === "assistant") this.turns.pop();
    this.drawTurns();
    // The button that was pressed is gone.
    this.composer.focus();
    if (this.turns.length > 0) void this.answer();
  }

  /** The model ends the answer with its next token. */
  private stop(): void {
    this.writing?.abort();
  }

  /** Ends the answer now, as far as it came: what the model still says of it is ignored. */
  private interrupt(): void {
    if (!this.writing) return;
    this.writing.keep();
    this.writing.abort();
    this.writing = null;
    this.composer.setBusy(false);
  }

  private begin(signal: AbortSignal, seed: number): Generation {
    const settings = this.settings.settings;
    const options = { ...generateOptions(settings, seed), signal };
    const model = this.model!;
    if (model.info.hasChatTemplate) return model.chat(messagesOf(this.turns, settings.system), options);
    return model.generate(messagesOf(this.turns, settings.system).map((message) => message.content).join("\n"), options);
  }

  private async answer(): Promise<void> {
    this.lastAnswer?.offer(null);
    const view = (this.lastAnswer = new AnswerView());
    const position = this.turns.length;
    let text = "";
    const keep = (turn: Turn): void => {
      this.turns[position] = turn;
      this.save();
    };
    const keepText = (): void => {
      if (text !== "") keep({ role: "assistant", content: text });
    };
    const controller = new AbortController();
    const writing: Writing = (this.writing = { abort: () => controller.abort(), keep: keepText });
    this.save();
    this.log.append(view.element);
    view.busy(true);
    view.status("Reading the prompt…");
    this.composer.setBusy(true);
    this.scrollDown(true);
    const seed = this.settings.settings.seed ?? Math.floor(Math.random() * 2 ** 32);
    try {
      const started = performance.now();
      const generation = this.begin(controller.signal, seed);
      let [first, count, saved] = [0, 0, started];
      for await (const piece of generation) {
        if (this.writing !== writing) return;
        const now = performance.now();
        if (count++ === 0) first = now;
        text += piece.text;
        view.write(text);
        if (count > 1) view.status(`${formatRate(((count - 1) * 1000) / (now - first))} tokens/s`);
        this.scrollDown(false);
        if (now - saved > 2000) {
          saved = now;
          keepText();
        }
      }
      const result = await generation.result;
      if (this.writing !== writing) return;
      const facts: AnswerFacts = {
        tokens: result.newTokens, promptTokens: result.promptTokens, firstTokenMs: result.promptMs, reason: result.reason, seed,
        tokensPerSecond: result.decodeMs > 0 ? ((result.newTokens - 1) * 1000) / result.decodeMs : 0,
      };
      const turn: Turn = { role: "assistant", content: result.text, facts };
      keep(turn);
      view.finish(turn, true);
      this.scrollDown(false);
    } catch (error) {
      if (this.writing !== writing) return;
      keepText();
      view.finish({ role: "assistant", content: text });
      this.fail(error, view);
    } finally {
      if (this.writing === writing) {
        this.writing = null;
        this.composer.setBusy(false);
        this.offerTools();
        this.save();
        void this.drawBar();
      }
    }
  }

  /** The question stays; an answer that broke off stays as far as it came. */
  private fail(error: unknown, view: AnswerView): void {
    const card = errorCard(error, { ...this.otherDevice(), retry: () => this.regenerate(), recover: () => void this.recover(), "new-chat": () => this.newChat() });
    view.element.append(card);
    card.scrollIntoView({ block: "nearest" });
  }

  /** What can be done where this device cannot run the model. */
  private otherDevice(): Remedies {
    const input = this.input;
    const device = this.model!.info.device.kind;
    return {
      inspect: () => this.inspect(input, device),
      ...(device === "gpu" && { "use-cpu": () => void this.moveToCpu(input) }),
    };
  }

  private async moveToCpu(input: PageInput): Promise<void> {
    if (await this.panel.load(input, { device: "cpu" })) this.regenerate();
  }

  /** Starts the device anew, and asks the last question again. */
  private async recover(): Promise<void> {
    const model = this.model!;
    const again = (): void => void this.recover();
    this.log.querySelector(".card.error")?.remove();
    this.composer.enable(false, "The GPU is restarting");
    const restarted = this.recovery.run(model, { ...this.otherDevice(), retry: again, recover: again });
    this.offerTools();
    const ready = await restarted;
    if (this.model !== model) return;
    this.composer.enable(ready, "The GPU is not running");
    if (!ready) return;
    void this.drawBar();
    this.regenerate();
  }

  /** Follows the text unless the reader has scrolled up. */
  private scrollDown(always: boolean): void {
    const scroller = this.log.parentElement;
    if (!scroller) return;
    const distance = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    if (always || distance < 120) requestAnimationFrame(() => scroller.scrollTo({ top: scroller.scrollHeight }));
  }
}

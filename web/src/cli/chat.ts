// pteryx chat: a conversation with a language model. SPDX-License-Identifier: BSD-3-Clause
import { homedir } from "node:os";
import { basename, isAbsolute, join, resolve } from "node:path";
import { loadModel } from "../load.js";
import type { GenerateOptions, Message, Model, Progress } from "../types.js";
import type { ChatArguments } from "./arguments.js";
import { LineInput, ProgressLine, interruptible, note } from "./terminal.js";

const kPhases: Readonly<Record<Progress["phase"], string>> = {
  download: "reading the file",
  convert: "converting",
  upload: "loading weights",
  compile: "compiling shaders",
};

/** Where the command-line tool keeps conversions, too; none where the environment names no folder. */
function cacheFolder(): string | undefined {
  const { PTERYX_CACHE: own, XDG_CACHE_HOME: xdg } = process.env;
  if (own) return resolve(own);
  if (xdg !== undefined && isAbsolute(xdg)) return join(xdg, "pteryx");
  const home = homedir();
  return isAbsolute(home) ? join(home, ".cache", "pteryx") : undefined;
}

async function open(args: ChatArguments, signal: AbortSignal): Promise<Model> {
  const folder = cacheFolder();
  const { cacheLimit } = args;
  const line = new ProgressLine();
  let converting = false;
  const onProgress = ({ phase, fraction }: Progress): void => {
    if (phase === "convert" && !converting) {
      converting = true;
      line.clear();
      note(`converting ${args.model}${folder === undefined ? "" : `; the result is kept in ${folder}`}`);
    }
    line.show(`${kPhases[phase]} ${Math.round(fraction * 100)} %`);
  };
  // What is at a relative path is the same file wherever it is named from.
  const model = /^[a-z][a-z0-9+.-]+:/i.test(args.model) ? args.model : resolve(args.model);
  try {
    return await loadModel(model, { device: args.device, signal, onProgress, ...(folder === undefined ? {} : { cacheFolder: folder }), ...(cacheLimit === undefined ? {} : { cacheLimit }) });
  } finally {
    line.clear();
  }
}

/** What a user should know of the device, on one line. */
function describeDevice(model: Model, args: ChatArguments): void {
  const { kind, fallback } = model.info.device;
  if (kind === "cpu" && args.device === "cpu") note("running on the CPU, as --device says");
  else if (fallback.length > 0) note(fallback.join(" "));
}

class Conversation {
  readonly #messages: Message[] = [];
  readonly #options: GenerateOptions;

  constructor(readonly model: Model, args: ChatArguments) {
    const { system, maxTokens, temperature, seed } = args;
    if (system !== undefined) this.#messages.push({ role: "system", content: system });
    this.#options = {
      ...(maxTokens === undefined ? {} : { maxTokens }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(seed === undefined ? {} : { seed }),
    };
  }

  /** Writes the answer as it comes. `true`: it was interrupted; what was written of it counts. */
  async answer(content: string): Promise<boolean> {
    const messages: Message[] = [...this.#messages, { role: "user", content }];
    const { value, interrupted } = await interruptible(async (signal) => {
      const text = this.model.chat(messages, { ...this.#options, signal });
      for await (const piece of text) await write(piece.text);
      await write("\n");
      return text.result;
    });
    this.#messages.splice(0, Infinity, ...messages, { role: "assistant", content: value.text });
    if (value.reason === "context") note("the context is full: start again to go on");
    return interrupted;
  }
}

/** Waits where the reader is slower. */
function write(text: string): Promise<void> {
  return new Promise((done) => (process.stdout.write(text) ? done() : process.stdout.once("drain", done)));
}

/** Until there is nothing left to answer, or somebody interrupts what nothing follows. Rejects with a PteryxError. */
export async function chat(args: ChatArguments): Promise<"done" | "interrupted"> {
  const { value: model } = await interruptible((signal) => open(args, signal));
  try {
    describeDevice(model, args);
    const conversation = new Conversation(model, args);
    if (args.prompt !== undefined) return (await conversation.answer(args.prompt)) ? "interrupted" : "done";
    const input = new LineInput();
    try {
      if (input.typed) note(`${basename(args.model)} on ${model.info.device.name}, context ${model.info.context} tokens; Ctrl-D quits`);
      for (let line = await input.next(); line !== undefined; line = await input.next()) {
        if (line.trim() === "") continue;
        if ((await conversation.answer(line)) && !input.typed) return "interrupted";
      }
      return "done";
    } finally {
      input.close();
    }
  } finally {
    await model.dispose();
  }
}

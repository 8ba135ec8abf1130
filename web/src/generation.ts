// A text that is being made, as an iterator. SPDX-License-Identifier: BSD-3-Clause
import { check } from "./engine/options.js";
import type { Emit } from "./engine/service.js";
import { PteryxError } from "./errors.js";
import type { GenerateOptions, GenerateResult, Generation, Piece } from "./types.js";

type Start = (options: Omit<GenerateOptions, "signal" | "onPrompt">, signal: AbortSignal, emit: Emit) => Promise<GenerateResult>;

/** Starts at once; pieces wait until they are asked for. `given`: the arguments that options are beside. */
export function startGeneration(start: Start, options: GenerateOptions, given: Readonly<Record<string, unknown>>): Generation {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const pieces: Piece[] = [];
  let over = false;
  let reading = false;
  let failure: unknown;
  let resume: (() => void) | undefined;
  const tell = (): void => {
    resume?.();
    resume = undefined;
  };
  const run = async (): Promise<GenerateResult> => {
    check(options, given);
    const { signal, onPrompt, ...sent } = options;
    if (signal?.aborted === true) abort();
    else signal?.addEventListener("abort", abort);
    try {
      return await start(sent, controller.signal, (event) => {
        if ("piece" in event) pieces.push(event.piece);
        if ("prompt" in event) onPrompt?.(event.prompt[0], event.prompt[1]);
        tell();
      });
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  };
  const result = run();
  const end = (error?: unknown): void => {
    over = true;
    failure = error;
    tell();
  };
  result.then(() => end(), end);

  async function* iterate(): AsyncGenerator<Piece, void, undefined> {
    if (reading) throw new PteryxError("invalid-argument", "another loop is reading this text");
    reading = true;
    try {
      for (;;) {
        while (pieces.length > 0) yield pieces.shift()!;
        if (failure !== undefined) throw failure;
        if (over) return;
        await new Promise<void>((resolve) => (resume = resolve));
      }
    } finally {
      reading = false;
      abort();
    }
  }
  return { result, [Symbol.asyncIterator]: iterate };
}

// Waiting that a signal ends. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";

/** What everything rejects with once its signal says so. */
export function cancelled(name: string, signal?: AbortSignal): PteryxError {
  return new PteryxError("cancelled", `${name}: cancelled`, { cause: signal?.reason });
}

export function throwIfAborted(name: string, signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw cancelled(name, signal);
}

/** Only ever rejects, once the signal says so. */
export function untilAborted(name: string, signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(cancelled(name, signal))));
}

/** Resolves after `ms`, or at once when the signal ends it; the caller looks at the signal afterwards. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}

/** Runs what it is given one after the other, in the order of the calls. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

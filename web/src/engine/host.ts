// What the imports of the module share: its memory, the text of the last error, and who waits. SPDX-License-Identifier: BSD-3-Clause
import { isNode } from "../node_check.js";
import { ModuleMemory } from "./module_memory.js";

// What computes leaves the thread to others after so long; a run of the module's on the CPU after a little longer.
export const kTurnMs = 8;
// How long who waits sleeps at most where a signal may have ended what it waits for.
const kMomentMs = 50;

/** A number in browsers; in Node an object that may keep the process alive. */
type Timer = { ref?(): unknown; unref?(): unknown };

/** Answers to the module's questions; above `done`: a code of C++'s `Code`. */
export const Answer = { later: -1, done: 0, invalidProgram: 1, invalidArgument: 2, unsupported: 3, device: 4, memory: 5, io: 6, cancelled: 7 } as const;

export class Host {
  /** Empty until the module is instantiated. */
  readonly memory = new ModuleMemory();
  #message: Uint8Array<ArrayBufferLike> = new Uint8Array();
  #waiting: (() => void)[] = [];
  #channel: MessageChannel | undefined;
  #turnBegan = performance.now();
  /** Wakes who waits; one for many waits, because making one costs more than looking once too often. */
  #timer: Timer | undefined;
  #timerEnds = 0;

  /** An answer that is an error; the module asks for its text at once. */
  fail(code: number, message: string): number {
    this.#message = this.memory.encode(message);
    return code;
  }
  messageImports() {
    return {
      stop: (text: number, size: number): never => {
        throw new Error(this.memory.text(text, size));
      },
      message_size: (): number => this.#message.length,
      message_copy: (address: number): void => this.memory.view(address, this.#message.length).set(this.#message),
    };
  }

  /** Something has happened that the module may wait for. */
  wake(): void {
    this.#timer?.unref?.(); // while nobody waits, it keeps no process alive
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
  /**
   * Now and then lets the thread do what has come up, such as a message that cancels: the CPU's kernels compute without waiting for anything, so
   * nothing else would have its turn.
   */
  async breathe(): Promise<void> {
    if (performance.now() - this.#turnBegan < kTurnMs) return;
    await new Promise<void>((resolve) => {
      if (isNode) return void setImmediate(() => setImmediate(resolve)); // timers come between the two
      const { port1, port2 } = (this.#channel ??= new MessageChannel());
      port1.onmessage = () => resolve();
      port2.postMessage(null);
    });
    this.#turnBegan = performance.now();
  }
  /** Until something has happened, or a moment has passed; or before, for nothing. */
  async next(mostMs = kMomentMs): Promise<void> {
    this.#startTimer(mostMs);
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#turnBegan = performance.now();
  }
  #startTimer(mostMs: number): void {
    const ends = performance.now() + mostMs;
    this.#timer?.ref?.();
    if (this.#timer !== undefined && this.#timerEnds <= ends) return;
    clearTimeout(this.#timer as number | undefined);
    this.#timerEnds = ends;
    const wake = (): void => {
      this.#timer = undefined;
      this.wake();
    };
    this.#timer = setTimeout(wake, mostMs) as Timer;
  }
}

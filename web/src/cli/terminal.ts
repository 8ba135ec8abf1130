// Lines in, lines out, and Ctrl-C. SPDX-License-Identifier: BSD-3-Clause
import { createInterface } from "node:readline";

/** A line on stderr, whatever the text holds. */
export function note(text: string): void {
  process.stderr.write(`pteryx: ${text.trim().replace(/\s*\n\s*/g, "; ").replace(/[\x00-\x1f\x7f-\x9f]/g, " ")}\n`);
}

/** How far a load is, on a line of its own that goes away; nothing where stderr is a file. */
export class ProgressLine {
  #shown = "";

  show(text: string): void {
    if (!process.stderr.isTTY || text === this.#shown) return;
    process.stderr.write(`\r${text.padEnd(this.#shown.length)}`);
    this.#shown = text;
  }
  clear(): void {
    if (this.#shown !== "") process.stderr.write(`\r${"".padEnd(this.#shown.length)}\r`);
    this.#shown = "";
  }
}

/** Ctrl-C ends what `work` does; the process goes on. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<{ value: T; interrupted: boolean }> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  process.on("SIGINT", abort);
  try {
    return { value: await work(controller.signal), interrupted: controller.signal.aborted };
  } finally {
    process.off("SIGINT", abort);
  }
}

/** Lines that are typed or piped in. Ctrl-C at the prompt is the end. */
export class LineInput {
  readonly typed = process.stdin.isTTY === true;
  readonly #waiting: ((line: string | undefined) => void)[] = [];
  readonly #lines: string[] = [];
  readonly #reader = createInterface({ input: process.stdin, terminal: this.typed, ...(this.typed ? { output: process.stderr } : {}), prompt: "> " });
  #ended = false;

  constructor() {
    this.#reader.on("line", (line) => {
      const wanted = this.#waiting.shift();
      if (wanted === undefined) this.#lines.push(line);
      else wanted(line);
    });
    this.#reader.on("SIGINT", () => {
      // The reader has the terminal: an answer under way is told by a signal, as from a pipe.
      if (this.#waiting.length === 0) process.emit("SIGINT");
      else this.close();
    });
    this.#reader.on("close", () => {
      this.#ended = true;
      for (const wanted of this.#waiting.splice(0)) wanted(undefined);
    });
  }

  /** `undefined` at the end. */
  next(): Promise<string | undefined> {
    if (this.#lines.length > 0) return Promise.resolve(this.#lines.shift());
    if (this.#ended) return Promise.resolve(undefined);
    if (this.typed) this.#reader.prompt();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
  close(): void {
    if (this.typed && !this.#ended) process.stderr.write("\n");
    this.#reader.close();
  }
}

// How far a load is, over all of its phases. SPDX-License-Identifier: BSD-3-Clause
import type { Progress } from "../types.js";

// What each phase takes of the whole, by experience with models that are not in the cache.
const kShares: Readonly<Record<Progress["phase"], readonly [number, number]>> = {
  download: [0, 0.3],
  convert: [0.3, 0.6],
  upload: [0.3, 0.9],
  compile: [0.9, 1],
};

/** Puts what sources and the module say into one measure that never decreases. */
export class LoadProgress {
  #fraction = 0;
  #last = 0;
  #downloaded = true;
  constructor(readonly tell: (progress: Progress) => void) {}

  /** Of the files that are read. */
  bytes(done: number, total: number): void {
    this.#downloaded = done >= total;
    this.#tell("download", done, total);
  }
  /** Of a GGUF file. It begins while the file comes, which is what one waits for then. */
  converted(done: number, total: number): void {
    if (this.#downloaded) this.#tell("convert", done, total);
  }
  /** What the module says. */
  module(what: string, done: number, total: number): void {
    if (what === "compiling shaders") this.#tell("compile", 0, 0);
    else if (what === "uploading weights") this.#tell("upload", done, total);
  }
  finish(): void {
    this.#fraction = 1;
    this.#last = 0;
    this.#tell("compile", 0, 0);
  }

  #tell(phase: Progress["phase"], doneBytes: number, totalBytes: number): void {
    const [from, to] = kShares[phase];
    const fraction = from + (to - from) * (totalBytes > 0 ? Math.min(doneBytes / totalBytes, 1) : 0);
    const now = performance.now();
    if (fraction <= this.#fraction && now - this.#last < 50) return;
    this.#fraction = Math.max(this.#fraction, fraction);
    this.#last = now;
    this.tell({ phase, fraction: this.#fraction, doneBytes, totalBytes });
  }
}

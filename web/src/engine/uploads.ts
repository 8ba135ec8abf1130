// Bytes of sources on their way to buffers, without passing through the module. SPDX-License-Identifier: BSD-3-Clause
import type { Sources } from "./source_imports.js";

interface Upload {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly source: number;
  readonly from: number;
  readonly size: number;
}
interface Part {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly bytes: Promise<Uint8Array>;
  readonly last: boolean;
  readonly job: Job;
}
interface Job {
  readonly upload: Upload;
  taken: number; // bytes whose parts were asked for
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  failed: boolean;
}

// Few and large enough for a network, small enough that what is under way does not count.
const kPartBytes = 4 << 20;
const kPartsAhead = 4;
// What is written waits in the browser's memory until the GPU has taken it.
const kMostUnsubmitted = 64 << 20;

/** In the order in which they were asked for; a few parts are read ahead of the one that is written. */
export class Uploads {
  readonly #jobs: Job[] = [];
  readonly #parts: Part[] = [];
  readonly #gone = new WeakSet<GPUBuffer>();
  #running = false;
  #closed = false;
  #unsubmitted = 0;

  constructor(
    readonly device: GPUDevice,
    readonly sources: Sources,
  ) {}

  /** Resolves once all of it is written. */
  add(upload: Upload): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#jobs.push({ upload, taken: 0, resolve, reject, failed: false });
      if (!this.#running) void this.#run();
    });
  }
  /** Nothing more is written to a buffer that is gone. */
  forget(buffer: GPUBuffer): void {
    this.#gone.add(buffer);
  }
  close(): void {
    this.#closed = true;
  }

  #readAhead(): void {
    while (this.#parts.length < kPartsAhead && this.#jobs.length > 0) {
      const job = this.#jobs[0]!;
      const { buffer, offset, source, from, size } = job.upload;
      const count = Math.min(kPartBytes, size - job.taken);
      const bytes = job.failed || this.#gone.has(buffer) ? Promise.resolve(new Uint8Array()) : this.sources.read(source, from + job.taken, count);
      bytes.catch(() => undefined); // looked at when its turn comes
      const last = job.taken + count === size;
      this.#parts.push({ buffer, offset: offset + job.taken, bytes, last, job });
      job.taken += count;
      if (last) this.#jobs.shift();
    }
  }
  async #run(): Promise<void> {
    this.#running = true;
    for (this.#readAhead(); this.#parts.length > 0; this.#readAhead()) {
      const part = this.#parts.shift()!;
      try {
        const bytes = await part.bytes;
        if (!this.#closed && !part.job.failed && !this.#gone.has(part.buffer)) await this.#write(part, bytes);
      } catch (error) {
        part.job.failed = true;
        part.job.reject(error);
      }
      if (part.last) part.job.resolve();
    }
    this.#running = false;
  }
  async #write(part: Part, bytes: Uint8Array): Promise<void> {
    const { queue } = this.device;
    const body = bytes.length & ~3;
    if (body > 0) queue.writeBuffer(part.buffer, part.offset, bytes.buffer as ArrayBuffer, bytes.byteOffset, body);
    if (body < bytes.length) {
      const tail = new Uint8Array(4);
      tail.set(bytes.subarray(body));
      queue.writeBuffer(part.buffer, part.offset + body, tail);
    }
    this.#unsubmitted += bytes.length;
    if (this.#unsubmitted < kMostUnsubmitted) return;
    this.#unsubmitted = 0;
    queue.submit([]);
    await queue.onSubmittedWorkDone();
  }
}

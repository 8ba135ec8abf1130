// Sources of bytes that the module knows by number. SPDX-License-Identifier: BSD-3-Clause
import type { ByteSource } from "../byte_source.js";
import { isOutOfMemory, PteryxError } from "../errors.js";
import { Answer, type Host } from "./host.js";

type Fetched = { bytes?: Uint8Array; error?: unknown };

/** How the module is told of a source. */
export interface SourceDescription {
  readonly id: number;
  readonly name: string;
  readonly size: number;
}

export class Sources {
  readonly #sources = new Map<number, ByteSource>();
  readonly #fetched = new Map<string, Fetched>();
  #last = 0;
  /** What a source failed with, for the error's own code. */
  failure: PteryxError | undefined;

  constructor(readonly host: Host) {}

  /** Whether the module asked for bytes that have not come yet. */
  get waiting(): boolean {
    for (const { bytes, error } of this.#fetched.values()) if (bytes === undefined && error === undefined) return true;
    return false;
  }

  add(source: ByteSource): SourceDescription {
    const id = ++this.#last;
    this.#sources.set(id, source);
    return { id, name: source.name, size: source.size };
  }
  /** Rejects with a PteryxError, which stays in `failure`. */
  async read(id: number, offset: number, size: number): Promise<Uint8Array> {
    try {
      const source = this.#sources.get(id);
      if (source === undefined) throw new PteryxError("io", "the source of a read is closed");
      return await source.read(offset, size);
    } catch (error) {
      this.failure = error instanceof PteryxError ? error : new PteryxError(isOutOfMemory(error) ? "out-of-memory" : "io", String(error), { cause: error });
      throw this.failure;
    }
  }
  close(): void {
    for (const source of this.#sources.values()) source.close();
    this.#sources.clear();
  }

  imports() {
    return {
      source_read: (id: number, offset: number, out: number, size: number): number => {
        const key = `${id}:${offset}:${size}`;
        const fetched = this.#fetched.get(key);
        if (fetched === undefined) {
          const entry: Fetched = {};
          this.#fetched.set(key, entry);
          void this.read(id, offset, size)
            .then((bytes) => (entry.bytes = bytes), (error: unknown) => (entry.error = error))
            .then(() => this.host.wake());
          return Answer.later;
        }
        if (fetched.bytes !== undefined) {
          this.host.memory.view(out, size).set(fetched.bytes);
          this.#fetched.delete(key);
          return Answer.done;
        }
        if (fetched.error === undefined) return Answer.later;
        this.#fetched.delete(key);
        return this.host.fail(Answer.io, fetched.error instanceof Error ? fetched.error.message : String(fetched.error));
      },
      sources_download: (): void => {
        for (const source of this.#sources.values()) source.beginDownload?.();
      },
      source_release: (id: number): void => {
        this.#sources.get(id)?.close();
        this.#sources.delete(id);
      },
    };
  }
}

// A file as blocks of one size, each of which is there whole or not at all. SPDX-License-Identifier: BSD-3-Clause
import { Turns } from "./cancel.js";

/** Of every block but the last. What a killed browser loses of a download is less than this. */
export const BLOCK_BYTES = 4 * 1024 * 1024;

/** Blocks of one file that are kept. */
export interface BlockStore {
  /** Of the whole file; `Infinity` while it is being written and nobody knows. */
  readonly size: number;
  has(index: number): boolean;
  /** Keeps a block, which nobody changes afterwards. Rejects with the code `quota` where there is no room, `io` otherwise. */
  put(index: number, bytes: Uint8Array): Promise<void>;
  /** [from, to) of a block, or `undefined` where the block turns out not to be there; `has` then says so too. */
  get(index: number, from: number, to: number): Promise<Uint8Array | undefined>;
  close(): void;
}

export function blockCount(size: number): number {
  return Math.ceil(size / BLOCK_BYTES);
}

/** Bytes of a block in a file of `size` bytes. */
export function blockLength(size: number, index: number): number {
  return Math.min(BLOCK_BYTES, size - index * BLOCK_BYTES);
}

/** The lowest block from `from` on that is not there; `blockCount` where none is missing. */
export function firstMissing(store: BlockStore, from = 0): number {
  const count = blockCount(store.size);
  let index = from;
  while (index < count && store.has(index)) index++;
  return index;
}

/** Bytes that are there. */
export function presentBytes(store: BlockStore): number {
  let bytes = 0;
  for (let index = 0; index < blockCount(store.size); index++) if (store.has(index)) bytes += blockLength(store.size, index);
  return bytes;
}

/** Blocks in memory. */
export class MemoryBlocks implements BlockStore {
  readonly #blocks = new Map<number, Uint8Array>();

  constructor(public size: number) {}

  has(index: number): boolean {
    return this.#blocks.has(index);
  }
  async put(index: number, bytes: Uint8Array): Promise<void> {
    this.#blocks.set(index, bytes);
  }
  async get(index: number, from: number, to: number): Promise<Uint8Array | undefined> {
    return this.#blocks.get(index)?.slice(from, to);
  }
  close(): void {
    this.#blocks.clear();
  }
}

/** The last few blocks that were used. They are shared, so readers copy. */
export class RecentBlocks {
  readonly #blocks = new Map<number, Uint8Array>();

  constructor(readonly capacity: number) {}

  get(index: number): Uint8Array | undefined {
    const block = this.#blocks.get(index);
    if (block) this.set(index, block);
    return block;
  }
  set(index: number, block: Uint8Array): void {
    this.#blocks.delete(index);
    this.#blocks.set(index, block);
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= this.capacity) break;
      this.#blocks.delete(oldest);
    }
  }
  clear(): void {
    this.#blocks.clear();
  }
}

// Reads below that take the whole block into memory: the next one is likely to be beside it.
const kSmallBytes = BLOCK_BYTES / 8;

/** Reads parts of kept blocks one after the other: many may be asked for at once, of blocks that are not to be in memory at the same time. */
export class BlockReader {
  readonly #turns = new Turns();
  #closed = false;

  constructor(
    readonly store: BlockStore,
    readonly recent: RecentBlocks,
  ) {}

  /** [from, to) of a block; the result is the caller's. `undefined` as of `BlockStore.get`, and after `close`. */
  get(index: number, from: number, to: number): Promise<Uint8Array | undefined> {
    return this.#turns.run(async () => {
      if (this.#closed) return undefined;
      const recent = this.recent.get(index);
      if (recent) return recent.slice(from, to);
      if (to - from >= kSmallBytes) return this.store.get(index, from, to);
      const block = await this.store.get(index, 0, blockLength(this.store.size, index));
      if (block) this.recent.set(index, block);
      return block?.slice(from, to);
    });
  }
  /** Nothing more is read. */
  close(): void {
    this.#closed = true;
    this.recent.clear();
    this.store.close();
  }
}

// Downloads and conversions that the browser keeps. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { Turns, sleep } from "./cancel.js";
import { BLOCK_BYTES, MemoryBlocks, blockCount, blockLength, presentBytes } from "./blocks.js";
import { CacheFolder, CachedFile, type CacheKind } from "./cache_folder.js";
import { freeBytes, quotaError, type OpfsBlocks } from "./opfs.js";
import { StoredSource, type OpenSource } from "./source.js";

export type { CacheKind } from "./cache_folder.js";

/** A cached file. */
export interface CacheEntry {
  /** The URL; for a conversion, what was converted: a URL or the name of a file. */
  readonly url: string;
  /** A download, or a conversion of another file. */
  readonly kind: CacheKind;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Bytes in the cache; less than `size` if a download was interrupted, which the next load resumes. */
  readonly presentBytes: number;
  /** Whether all of it is there. */
  readonly complete: boolean;
  /** When it was last opened. */
  readonly lastUsed: Date;
}

/** The browser's cache of models. Without storage, calls resolve but hold nothing. */
export interface Cache {
  /** All entries, the most recently used first. */
  list(): Promise<CacheEntry[]>;
  /** Deletes a download and what was converted from it. `false`: nothing was there. */
  delete(url: string): Promise<boolean>;
  /** Deletes everything. */
  clear(): Promise<void>;
  /** Bytes in use by this origin and bytes that may still be stored, as the browser estimates them. */
  estimate(): Promise<{ readonly usedBytes: number; readonly freeBytes: number } | undefined>;
}

/** Downloads and conversions cached for this site. */
export const cache: Cache = {
  async list() {
    const folder = await CacheFolder.open();
    if (typeof folder === "string") return [];
    const entries = (await folder.records()).map(async ({ name, record }): Promise<CacheEntry[]> => {
      // Another tab may have removed it by now.
      const file = await CachedFile.open(folder, name, { ...record, complete: false }).catch(() => undefined);
      if (!file) return [];
      const present = presentBytes(file.blocks);
      await file.close();
      const { key: url, kind, size, lastUsedMs } = record;
      return [{ url, kind, size, presentBytes: present, complete: present === size, lastUsed: new Date(lastUsedMs) }];
    });
    return (await Promise.all(entries)).flat();
  },
  async delete(url) {
    const folder = await CacheFolder.open();
    if (typeof folder === "string") return false;
    const found = (await Promise.all([...names(url)].map((key) => folder.records(key)))).flat();
    for (const { name } of found) await folder.remove(name);
    return found.length > 0;
  },
  async clear() {
    const folder = await CacheFolder.open();
    if (typeof folder === "string") return;
    for await (const name of folder.handle.keys()) await folder.remove(name);
  },
  async estimate() {
    const estimate = await globalThis.navigator?.storage?.estimate?.().catch(() => undefined);
    if (estimate?.quota === undefined) return undefined;
    return { usedBytes: estimate.usage ?? 0, freeBytes: Math.max(0, estimate.quota - (estimate.usage ?? 0)) };
  },
};

/** Keys of downloads are absolute addresses; a page may name them as it loaded them. */
function names(url: string): Set<string> {
  const base = typeof location === "undefined" ? undefined : location.href;
  return new Set([url, parseUrl(url, base)?.href ?? url]);
}
/** `undefined`: it is no address. */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

let persistenceAsked = false;
/** Asks once that the browser does not evict what is kept. Only pages can ask: on other threads this does nothing. */
export async function askPersistence(): Promise<void> {
  const storage = globalThis.navigator?.storage;
  if (persistenceAsked || typeof storage?.persist !== "function") return;
  persistenceAsked = true;
  try {
    if (!(await storage.persisted())) await storage.persist();
  } catch {
    // The browser decides.
  }
}

/** Rejects with the code `quota` where the browser says that there is less room. */
export async function requireRoom(name: string, neededBytes: number): Promise<void> {
  const free = await freeBytes();
  if (free !== undefined && neededBytes > free) throw quotaError(name, neededBytes, free);
}

/** Writes a file of which nothing counts before `finish`. Positions may be written in any order and again; what was never written is zero. */
export interface EntryWriter {
  /** Why the entry is in memory only, and is gone with the page; empty where it is kept. */
  readonly note: string;
  write(offset: number, bytes: Uint8Array): Promise<void>;
  read(offset: number, size: number): Promise<Uint8Array>;
  /** Writes out what is still in memory. */
  flush(): Promise<void>;
  /** Makes it count, and opens it. `size`: of the file. */
  finish(size: number): Promise<OpenSource>;
  /** Removes it. */
  abort(): Promise<void>;
}

/** Which conversion of a source. */
export interface EntryOptions {
  /** The source's; where it differs from that of an older conversion, `finish` removes that one. */
  readonly identity?: string;
  /** What else the content depends on, such as settings and the converter's version. */
  readonly tag?: string;
}

/**
 * Begins a file in the cache. `key`: what `cache.list` shows and `cache.delete` takes, the address or name of what is converted. `expectedBytes`:
 * rejects at once, with the code `quota`, where there is no room for them. Where there is no cache the file is held in memory, and `note` says why;
 * so it is, without a note, where it is not to be kept.
 */
export async function createEntry(
  key: string, _kind: "conversion", options: EntryOptions & { readonly expectedBytes?: number; readonly keep?: boolean } = {}): Promise<EntryWriter> {
  const { identity = "", tag = "", expectedBytes = 0, keep = true } = options;
  if (!keep) return new BlockWriter(key, identity, undefined, "");
  const folder = await CacheFolder.open();
  if (typeof folder === "string") return new BlockWriter(key, identity, undefined, folder);
  await requireRoom(key, expectedBytes);
  return new BlockWriter(key, identity, await folder.createConversion(key, identity, tag), "");
}

/** Opens what `createEntry` made with the same arguments and finished; `undefined` where there is none. */
export function openEntry(key: string, _kind: "conversion", options: EntryOptions = {}): Promise<OpenSource | undefined> {
  const { identity = "", tag = "" } = options;
  return openConversion(key, tag, identity);
}

/** What was last made of what is at an address, whatever is there now; `undefined` where there is nothing. */
export function latestEntry(key: string, tag: string): Promise<OpenSource | undefined> {
  return openConversion(key, tag);
}

async function openConversion(key: string, tag: string, identity?: string): Promise<OpenSource | undefined> {
  const folder = await CacheFolder.open();
  const file = typeof folder === "string" ? undefined : await folder.findConversion(key, identity, tag);
  if (!file) return undefined;
  await file.touch();
  // What has lost a part is made anew the next time.
  return new StoredSource(file.blocks, key, file.record.identity, true, () => file.remove().catch(() => undefined));
}

/** Deletes the download of an address, and nothing that was converted from it, unless another tab uses it. */
export async function removeDownload(url: string): Promise<void> {
  const folder = await CacheFolder.open();
  if (typeof folder === "string") return;
  const isDownload = ({ record }: { record: { kind: CacheKind } }): boolean => record.kind === "download";
  // Whoever just closed it lets go of it in a moment.
  for (let tries = 0; tries < 10 && (await folder.records(url)).some(isDownload); tries++) {
    await folder.removeUnused(url, isDownload);
    await sleep(20);
  }
}

const kBuffered = 3;

class BlockWriter implements EntryWriter {
  readonly #store: OpfsBlocks | MemoryBlocks;
  readonly #turns = new Turns();
  /** Blocks in memory, the last used last. */
  readonly #buffers = new Map<number, Uint8Array>();
  readonly #written = new Set<number>();
  #done = false;

  constructor(readonly key: string, readonly identity: string, readonly file: CachedFile | undefined, readonly note: string) {
    this.#store = file?.blocks ?? new MemoryBlocks(Infinity);
  }

  write(offset: number, bytes: Uint8Array): Promise<void> {
    return this.#turns.run(() => this.#each(offset, bytes.length, (buffer, from, at, count) => buffer.set(bytes.subarray(at, at + count), from)));
  }

  async read(offset: number, size: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(size);
    await this.#turns.run(() => this.#each(offset, size, (buffer, from, at, count) => bytes.set(buffer.subarray(from, from + count), at)));
    return bytes;
  }

  flush(): Promise<void> {
    return this.#turns.run(async () => {
      for (const index of [...this.#buffers.keys()]) await this.#putOut(index, BLOCK_BYTES);
    });
  }

  finish(size: number): Promise<OpenSource> {
    return this.#turns.run(async () => {
      this.#check(0, size);
      for (let index = 0; index < blockCount(size); index++) {
        const length = blockLength(size, index);
        if (this.#written.has(index) && !this.#buffers.has(index) && length === BLOCK_BYTES) continue;
        await this.#buffer(index);
        await this.#putOut(index, length);
      }
      for (let index = 0; index < blockCount(size); index++) if (!this.#store.has(index)) throw this.#removed();
      this.#store.size = size;
      await this.file?.update({ size, complete: true });
      this.#done = true;
      await this.file?.replaceOthers();
      return new StoredSource(this.#store, this.key, this.identity, this.file !== undefined);
    });
  }

  abort(): Promise<void> {
    return this.#turns.run(async () => {
      if (this.#done) return;
      this.#done = true;
      this.#buffers.clear();
      if (this.file) await this.file.remove();
      else this.#store.close();
    });
  }

  #check(offset: number, size: number): void {
    if (this.#done) throw new PteryxError("internal", `${this.key}: written after it was finished`);
    const valid = Number.isSafeInteger(offset) && Number.isSafeInteger(offset + size) && offset >= 0 && size >= 0;
    if (!valid) throw new PteryxError("internal", `${this.key}: ${size} bytes at ${offset} are no place in a file`);
  }
  #removed(): PteryxError {
    return new PteryxError("io", `${this.key}: was removed from the cache while it was being written`);
  }

  async #each(offset: number, size: number, copy: (buffer: Uint8Array, from: number, at: number, count: number) => void): Promise<void> {
    this.#check(offset, size);
    for (let at = 0; at < size;) {
      const index = Math.floor((offset + at) / BLOCK_BYTES);
      const from = offset + at - index * BLOCK_BYTES;
      const count = Math.min(size - at, BLOCK_BYTES - from);
      copy(await this.#buffer(index), from, at, count);
      at += count;
    }
  }

  async #buffer(index: number): Promise<Uint8Array> {
    let buffer = this.#buffers.get(index);
    if (!buffer && this.#written.has(index)) {
      buffer = await this.#store.get(index, 0, BLOCK_BYTES);
      if (!buffer) throw this.#removed();
    }
    buffer ??= new Uint8Array(BLOCK_BYTES);
    this.#buffers.delete(index);
    this.#buffers.set(index, buffer);
    for (const oldest of [...this.#buffers.keys()].slice(0, -kBuffered)) await this.#putOut(oldest, BLOCK_BYTES);
    return buffer;
  }

  async #putOut(index: number, length: number): Promise<void> {
    await this.#store.put(index, this.#buffers.get(index)!.subarray(0, length));
    this.#buffers.delete(index);
    this.#written.add(index);
  }
}

// What every opened input offers, and the inputs that are at hand. SPDX-License-Identifier: BSD-3-Clause
import type { ByteSource } from "../byte_source.js";
import { PteryxError } from "../errors.js";
import { cancelled, throwIfAborted } from "./cancel.js";
import { Sha256 } from "./sha256.js";
import { BLOCK_BYTES, BlockReader, RecentBlocks, type BlockStore } from "./blocks.js";

/** An opened input. */
export interface OpenSource extends ByteSource {
  /** Differs when the content does: the address or name with what the server or the system says of the version. Empty where nothing is known. */
  readonly identity: string;
  /** Sentences for the user on what is used in place of something better, such as a load without the cache. */
  readonly notes: readonly string[];
  /** Everything was in the cache when it was opened. */
  readonly cached: boolean;
  /**
   * Says that all of the file will be read. Until then only what is asked for is fetched, so that a program can be refused by its tables;
   * afterwards the file comes in order, as one response where possible.
   */
  beginDownload(): void;
  /** Resolves when all of the file is at hand (in the cache, where there is one) and its SHA-256 is right, where one was given. */
  complete(): Promise<void>;
  /** Closes it, and removes what the cache kept of what it is a download of: it is of no use. */
  discard?(): Promise<void>;
}

/** Rejects a read that is not inside. */
export function checkRange(source: ByteSource, offset: number, size: number): void {
  if (Number.isSafeInteger(offset) && Number.isSafeInteger(size) && offset >= 0 && size >= 0 && offset + size <= source.size) return;
  throw new PteryxError("internal", `${source.name}: read of ${size} bytes at ${offset} is outside of its ${source.size} bytes`);
}

/** All bytes of a source in order. */
export async function* blocksOf(source: ByteSource): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < source.size; at += BLOCK_BYTES) yield source.read(at, Math.min(BLOCK_BYTES, source.size - at));
}

/** Reads all of a source in order and compares. Rejects with the code `invalid-program`. */
export async function verifySha256(source: ByteSource, expected: string): Promise<void> {
  const hash = new Sha256();
  for await (const block of blocksOf(source)) hash.update(block);
  checkSha256(source.name, expected, hash.hex());
}

export function checkSha256(name: string, expected: string, found: string): void {
  if (found === expected.toLowerCase()) return;
  throw new PteryxError("invalid-program", `${name}: SHA-256 is ${found}, expected ${expected.toLowerCase()}`);
}

/** What the sources at hand have in common. */
export abstract class LocalSource implements OpenSource {
  readonly notes: readonly string[] = [];
  readonly cached: boolean = false;
  abstract readonly size: number;
  protected closed = false;

  constructor(readonly name: string, readonly identity: string, protected readonly signal?: AbortSignal, readonly sha256?: string) {}

  async read(offset: number, size: number): Promise<Uint8Array> {
    checkRange(this, offset, size);
    throwIfAborted(this.name, this.signal);
    if (this.closed) throw cancelled(this.name);
    return size === 0 ? new Uint8Array() : this.fetch(offset, size);
  }
  protected abstract fetch(offset: number, size: number): Promise<Uint8Array>;

  beginDownload(): void {}
  async complete(): Promise<void> {
    if (this.sha256) await verifySha256(this, this.sha256);
  }
  close(): void {
    this.closed = true;
  }
}

/** Bytes of the caller's, which stay as they are. */
export class MemorySource extends LocalSource {
  readonly size: number;

  constructor(readonly bytes: Uint8Array, signal?: AbortSignal, sha256?: string) {
    super("bytes", "", signal, sha256);
    this.size = bytes.length;
  }
  protected async fetch(offset: number, size: number): Promise<Uint8Array> {
    return this.bytes.slice(offset, offset + size);
  }
}

/** A file that was dropped or chosen, or a blob; read in slices. */
export class BlobSource extends LocalSource {
  readonly size: number;

  constructor(readonly blob: Blob, signal?: AbortSignal, sha256?: string) {
    const file = typeof File !== "undefined" && blob instanceof File ? blob : undefined;
    super(file?.name || "file", file ? `file:${file.name}:${file.size}:${file.lastModified}` : "", signal, sha256);
    this.size = blob.size;
  }
  protected async fetch(offset: number, size: number): Promise<Uint8Array> {
    let bytes: Uint8Array;
    try {
      bytes = new Uint8Array(await this.blob.slice(offset, offset + size).arrayBuffer());
    } catch (cause) {
      throw new PteryxError("io", `${this.name}: cannot be read; it was changed, moved or deleted after it was chosen. Choose it again`, { cause });
    }
    if (bytes.length !== size) throw new PteryxError("io", `${this.name}: ends at byte ${offset + bytes.length}, expected ${this.size}. Choose it again`);
    return bytes;
  }
}

/** Another source as it is, but for what is said of it. */
class WrappedSource implements OpenSource {
  constructor(protected readonly inner: OpenSource) {}

  get name(): string {
    return this.inner.name;
  }
  get size(): number {
    return this.inner.size;
  }
  get identity(): string {
    return this.inner.identity;
  }
  get notes(): readonly string[] {
    return this.inner.notes;
  }
  get cached(): boolean {
    return this.inner.cached;
  }
  read(offset: number, size: number): Promise<Uint8Array> {
    return this.inner.read(offset, size);
  }
  beginDownload(): void {
    this.inner.beginDownload();
  }
  complete(): Promise<void> {
    return this.inner.complete();
  }
  close(): void {
    this.inner.close();
  }
}

/** With more to tell the user. */
export class NotedSource extends WrappedSource {
  constructor(inner: OpenSource, readonly more: readonly string[]) {
    super(inner);
  }
  override get notes(): readonly string[] {
    return [...this.inner.notes, ...this.more];
  }
}

/** Under the name of what it was made of; kept for the next time. */
export class NamedSource extends WrappedSource {
  constructor(inner: OpenSource, private readonly other: string) {
    super(inner);
  }
  override get name(): string {
    return this.other;
  }
  override get cached(): boolean {
    return true;
  }
}

// Of a file that is not received any more: the reads of a load go from its beginning to its end.
const kRecentBlocks = 2;

/** All blocks of a store, such as a finished conversion. */
export class StoredSource extends LocalSource {
  readonly size: number;
  readonly #blocks: BlockReader;

  /** `onMissing`: where a block is not there any more. */
  constructor(store: BlockStore, name: string, identity: string, override readonly cached: boolean, private readonly onMissing?: () => Promise<void>) {
    super(name, identity);
    this.size = store.size;
    this.#blocks = new BlockReader(store, new RecentBlocks(kRecentBlocks));
  }
  protected async fetch(offset: number, size: number): Promise<Uint8Array> {
    return gather(offset, size, async (index, from, to) => {
      const bytes = await this.#blocks.get(index, from, to);
      if (!bytes && this.closed) throw cancelled(this.name);
      if (bytes) return bytes;
      await this.onMissing?.(); // whoever hears of the failure may end this thread
      throw new PteryxError("io", `${this.name}: was removed from the cache while in use`);
    });
  }
  override close(): void {
    super.close();
    this.#blocks.close();
  }
}

/** Puts [offset, offset + size) together from parts of blocks. */
export async function gather(
  offset: number, size: number, part: (index: number, from: number, to: number) => Promise<Uint8Array>): Promise<Uint8Array> {
  let all: Uint8Array | undefined;
  for (let at = offset; at < offset + size;) {
    const index = Math.floor(at / BLOCK_BYTES);
    const from = at - index * BLOCK_BYTES;
    const to = Math.min(BLOCK_BYTES, offset + size - index * BLOCK_BYTES);
    const bytes = await part(index, from, to);
    if (bytes.length === size) return bytes;
    all ??= new Uint8Array(size);
    all.set(bytes, at - offset);
    at += to - from;
  }
  return all ?? new Uint8Array();
}

// A file on a server: parts of it as they are asked for, then all of it in order. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { BLOCK_BYTES, BlockReader, RecentBlocks, blockCount, blockLength, firstMissing, presentBytes, type BlockStore } from "./blocks.js";
import { Turns, cancelled, throwIfAborted } from "./cancel.js";
import { HttpStream, versionIdentity, type Answer, type Remote } from "./http.js";
import { Sha256 } from "./sha256.js";
import { checkRange, checkSha256, gather, verifySha256, type OpenSource } from "./source.js";

// Blocks in memory beside the one that is being received. With the spans below and what the browser buffers, some 30 MB.
const kRecentBlocks = 4;
// Parts that are asked for by themselves before the download begins: at least so many bytes, and so many parts remembered.
const kSpanBytes = 64 * 1024;
const kSpans = 8;
const kSpanLimit = 1024 * 1024;
// A read that begins so close to where the stream is waits for it.
const kReachBytes = 512 * 1024;

/** What a source is opened with. */
export interface HttpSourceOptions {
  readonly remote: Remote;
  /** Keeps all blocks; without one, parts must be available. */
  readonly store?: BlockStore;
  readonly notes: readonly string[];
  readonly signal?: AbortSignal;
  readonly sha256?: string;
  readonly onBytes?: (doneBytes: number, totalBytes: number) => void;
  /** An answer whose body is to be used, from its start on. */
  readonly answer?: Answer;
  /** Called once when all blocks are in the store and the hash, where there is one, is right; `false` where it is not. */
  readonly onComplete?: (valid: boolean) => Promise<void>;
  /** Removes what is in the store, which is closed then. */
  readonly onDiscard?: () => Promise<void>;
}

/**
 * With a store, blocks are received from the lowest missing one on, whatever is asked for, so that the file comes once and in order. Without one,
 * the stream follows the reads. Before `beginDownload`, parts out of the stream's reach are asked for by themselves.
 */
export class HttpSource implements OpenSource {
  readonly name: string;
  readonly size: number;
  readonly identity: string;
  readonly notes: readonly string[];
  readonly cached: boolean;

  readonly #options: HttpSourceOptions;
  readonly #remote: Remote;
  readonly #store: BlockStore | undefined;
  readonly #end = new AbortController();
  readonly #reads = new Turns();
  readonly #steps = new Turns();
  readonly #recent = new RecentBlocks(kRecentBlocks);
  readonly #kept: BlockReader | undefined;
  #spans: { from: number; bytes: Uint8Array }[] = [];
  #stream: HttpStream | undefined;
  /** The block that the stream is in, as far as it was received. */
  #receiving: { index: number; bytes: Uint8Array; filled: number } | undefined;
  #downloading: boolean;
  /** Bytes of whole blocks that were received or found, and the most that was reported. */
  #keptBytes: number;
  #reportedBytes = 0;
  #completion: Promise<void> | undefined;
  readonly #hash: { sha: Sha256; position: number } | undefined;

  constructor(options: HttpSourceOptions) {
    this.#options = options;
    this.#remote = options.remote;
    this.#store = options.store;
    this.#kept = options.store && new BlockReader(options.store, this.#recent);
    this.name = options.remote.url;
    this.size = options.remote.size;
    this.notes = options.notes;
    this.identity = versionIdentity(this.name, options.remote.version, this.size, options.sha256);
    options.signal?.addEventListener("abort", this.#abort);
    if (options.signal?.aborted) this.#abort();
    // Servers that send only the whole are read from the start in any case.
    this.#downloading = !options.remote.ranges;
    this.#keptBytes = this.#store ? presentBytes(this.#store) : 0;
    this.cached = this.#keptBytes === this.size;
    if (options.sha256) this.#hash = { sha: new Sha256(), position: 0 };
    if (options.answer) this.#openStream(Math.floor(options.answer.start / BLOCK_BYTES), options.answer);
    this.#report();
  }

  readonly #abort = (): void => {
    this.#end.abort(this.#options.signal?.reason);
    this.#stream?.close();
  };

  close(): void {
    this.#options.signal?.removeEventListener("abort", this.#abort);
    this.#abort();
    this.#kept?.close();
    this.#recent.clear();
    this.#spans = [];
    this.#receiving = undefined;
  }

  async discard(): Promise<void> {
    this.close();
    await this.#options.onDiscard?.().catch(() => undefined);
  }

  read(offset: number, size: number): Promise<Uint8Array> {
    return this.#store ? this.#read(offset, size) : this.#reads.run(() => this.#read(offset, size));
  }

  async #read(offset: number, size: number): Promise<Uint8Array> {
    checkRange(this, offset, size);
    this.#throwIfEnded();
    const span = this.#spans.find(({ from, bytes }) => from <= offset && offset + size <= from + bytes.length);
    if (span) return span.bytes.slice(offset - span.from, offset - span.from + size);
    if (!this.#downloading && !this.#within(offset, size)) return this.#readSpan(offset, size);
    return gather(offset, size, (index, from, to) => this.#part(index, from, to));
  }

  beginDownload(): void {
    if (this.#downloading) return;
    this.#downloading = true;
    this.#spans = [];
    if (this.#store) this.complete().catch(() => undefined);
  }

  complete(): Promise<void> {
    this.#downloading = true;
    return (this.#completion ??= this.#complete().catch((error: unknown) => {
      this.#completion = undefined;
      throw error;
    }));
  }

  async #complete(): Promise<void> {
    this.#throwIfEnded();
    if (this.#store) {
      await this.#fillAll(this.#store);
      try {
        await this.#verify(this.#store);
      } catch (error) {
        await this.#options.onComplete?.(false);
        throw error;
      }
      await this.#options.onComplete?.(true);
      this.#recent.clear();
    } else if (this.#options.sha256 && this.#hash) {
      // Nothing is kept: what came in order is hashed already, otherwise it comes once more.
      if (this.#hash.position === this.size) checkSha256(this.name, this.#options.sha256, this.#hash.sha.hex());
      else await verifySha256(this, this.#options.sha256);
    }
  }

  async #fillAll(store: BlockStore): Promise<void> {
    while (firstMissing(store) < blockCount(this.size)) await this.#step(firstMissing(store));
  }

  /** Hashes what the stream did not, such as blocks of an earlier visit. */
  async #verify(store: BlockStore): Promise<void> {
    if (!this.#hash) return;
    while (this.#hash.position < this.size) {
      const index = this.#hash.position / BLOCK_BYTES;
      this.#addToHash(index, await this.#part(index, 0, blockLength(store.size, index)));
    }
    checkSha256(this.name, this.#options.sha256!, this.#hash.sha.hex());
  }
  #addToHash(index: number, block: Uint8Array): void {
    if (this.#hash?.position !== index * BLOCK_BYTES) return;
    this.#hash.sha.update(block);
    this.#hash.position += block.length;
  }

  #throwIfEnded(): void {
    throwIfAborted(this.name, this.#options.signal);
    if (this.#end.signal.aborted) throw cancelled(this.name);
  }

  /** Whether a read before the download is served by what is there or is about to come. */
  #within(offset: number, size: number): boolean {
    if (this.#stream && this.#receiving) {
      if (offset >= this.#receiving.index * BLOCK_BYTES && offset <= this.#stream.position + kReachBytes) return true;
    }
    for (let index = Math.floor(offset / BLOCK_BYTES); index * BLOCK_BYTES < offset + size; index++) {
      if (!this.#recent.get(index) && !this.#store?.has(index)) return false;
    }
    return true;
  }

  /** Asks for a part by itself. */
  async #readSpan(offset: number, size: number): Promise<Uint8Array> {
    const end = Math.min(this.size, offset + Math.max(size, kSpanBytes));
    const bytes = new Uint8Array(end - offset);
    const stream = new HttpStream(this.#remote, offset, end, this.#end.signal);
    try {
      for (let at = 0; at < bytes.length;) {
        const some = await stream.next();
        bytes.set(some, at);
        at += some.length;
      }
    } finally {
      stream.close();
    }
    if (bytes.length <= kSpanLimit) this.#spans = [{ from: offset, bytes }, ...this.#spans].slice(0, kSpans);
    return bytes.slice(0, size);
  }

  /** [from, to) of a block, as soon as it is there. The result is the caller's. */
  async #part(index: number, from: number, to: number): Promise<Uint8Array> {
    for (;;) {
      this.#throwIfEnded();
      const receiving = this.#receiving;
      if (receiving?.index === index && receiving.filled >= to) return receiving.bytes.slice(from, to);
      const recent = this.#recent.get(index);
      if (recent) return recent.slice(from, to);
      if (this.#store?.has(index)) {
        const bytes = await this.#kept!.get(index, from, to);
        if (bytes) return bytes;
        this.#throwIfEnded();
        this.#keptBytes = presentBytes(this.#store);
      }
      await this.#step(index);
    }
  }

  /** Receives some bytes, of block `wanted` or of one that comes before it. */
  #step(wanted: number): Promise<void> {
    return this.#steps.run(async () => {
      this.#throwIfEnded();
      if (this.#store ? this.#store.has(wanted) : this.#recent.get(wanted)) return;
      const target = this.#store ? Math.min(firstMissing(this.#store), wanted) : wanted;
      // Without a store, a block that comes soon is waited for; without ranges, any that comes later.
      const before = target - (this.#receiving?.index ?? Infinity);
      const usable = before === 0 || (before > 0 && (!this.#remote.ranges || (!this.#store && before <= 2)));
      if (!this.#stream || !usable) this.#openStream(target);
      await this.#receive();
    });
  }

  #openStream(index: number, answer?: Answer): void {
    this.#stream?.close();
    let end = index + 1;
    // Up to the next block that is there; without ranges the answer is the whole file anyway.
    while (end < blockCount(this.size) && !this.#store?.has(end)) end++;
    const last = this.#remote.ranges && !answer ? Math.min(end * BLOCK_BYTES, this.size) : this.size;
    this.#stream = new HttpStream(this.#remote, index * BLOCK_BYTES, last, this.#end.signal, answer);
    this.#startBlock(index);
  }
  #closeStream(): void {
    this.#stream?.close();
    this.#stream = undefined;
    this.#receiving = undefined;
  }
  #startBlock(index: number): void {
    this.#receiving = { index, bytes: new Uint8Array(blockLength(this.size, index)), filled: 0 };
  }

  async #receive(): Promise<void> {
    const stream = this.#stream!;
    try {
      for (let some = await stream.next(); some.length > 0;) {
        this.#throwIfEnded();
        const block = this.#receiving!;
        const taken = some.subarray(0, block.bytes.length - block.filled);
        block.bytes.set(taken, block.filled);
        block.filled += taken.length;
        some = some.subarray(taken.length);
        if (block.filled === block.bytes.length && !(await this.#finishBlock(stream, block))) return;
      }
    } catch (error) {
      // What is left of these bytes is lost, and what was received of this block is not continued by another stream.
      this.#closeStream();
      this.#throwIfEnded();
      throw error;
    }
    this.#report();
  }

  /** Keeps a received block. `false`: the stream is not used any more. */
  async #finishBlock(stream: HttpStream, block: { index: number; bytes: Uint8Array }): Promise<boolean> {
    this.#recent.set(block.index, block.bytes);
    this.#addToHash(block.index, block.bytes);
    const known = this.#store?.has(block.index) === true;
    if (!known) await this.#store?.put(block.index, block.bytes);
    if (!known) this.#keptBytes += block.bytes.length;
    const next = block.index + 1;
    const last = next * BLOCK_BYTES >= stream.end;
    // In the stream's way lies a block that is there: a stream to the end of a server with ranges is given up, one without is read on.
    const there = !last && this.#store?.has(next) === true && this.#remote.ranges;
    if (last || there) {
      this.#closeStream();
      this.#report();
      return false;
    }
    this.#startBlock(next);
    return true;
  }

  #report(): void {
    const block = this.#receiving;
    const filled = block && !this.#store?.has(block.index) ? block.filled : 0;
    this.#reportedBytes = Math.min(this.size, Math.max(this.#reportedBytes, this.#keptBytes + filled));
    this.#options.onBytes?.(this.#reportedBytes, this.size);
  }
}

/** Receives all of an answer whose size nobody knows before. Rejects with `network` where it is more than `limit`. */
export async function receiveAll(url: string, answer: Answer, limit: number, signal?: AbortSignal): Promise<Uint8Array[]> {
  const blocks: Uint8Array[] = [];
  let filled = BLOCK_BYTES;
  try {
    for (;;) {
      throwIfAborted(url, signal);
      const { done, value } = await answer.body.read();
      if (done) break;
      for (let at = 0; at < value.length;) {
        if (filled === BLOCK_BYTES) {
          if (blocks.length * BLOCK_BYTES >= limit) throw needsRanges(url, `more than ${limit}`);
          blocks.push(new Uint8Array(BLOCK_BYTES));
          filled = 0;
        }
        const taken = value.subarray(at, at + BLOCK_BYTES - filled);
        blocks.at(-1)!.set(taken, filled);
        filled += taken.length;
        at += taken.length;
      }
    }
  } catch (cause) {
    answer.body.cancel().catch(() => undefined);
    if (signal?.aborted) throw cancelled(url, signal);
    if (cause instanceof PteryxError) throw cause;
    throw new PteryxError("network", `${url}: the connection broke off`, { cause });
  }
  if (blocks.length > 0) blocks[blocks.length - 1] = blocks.at(-1)!.subarray(0, filled);
  return blocks;
}

export function needsRanges(url: string, bytes: string): PteryxError {
  return new PteryxError("network", `${url}: the server must support range requests to send ${bytes} bytes where there is no cache`);
}

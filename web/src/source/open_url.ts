// Opens what is at an address: finds out what the server can do and what the cache has. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { BLOCK_BYTES, MemoryBlocks, firstMissing, presentBytes, type BlockStore } from "./blocks.js";
import { requireRoom } from "./cache.js";
import { CacheFolder, type CachedFile } from "./cache_folder.js";
import { HttpError, kRetry, request, sameVersion, versionIdentity, type Answer, type Remote, type RequestOptions, type RetryOptions, type Version } from "./http.js";
import { HttpSource, needsRanges, receiveAll } from "./http_source.js";
import type { OpenSource } from "./source.js";

/** Options of `openUrl`. */
export interface UrlOptions {
  readonly signal?: AbortSignal;
  /** Keeps the file for the next visit, where the browser allows it. */
  readonly cache: boolean;
  /** Little of the file will be read: a whole copy in the cache is used, but none is begun, unless the server sends nothing but the whole file. */
  readonly tablesOnly?: boolean;
  readonly onBytes?: (doneBytes: number, totalBytes: number) => void;
  /** Called when a download begins that is kept. */
  readonly onKeep?: () => void;
  /** In hexadecimal. Compared by `complete()`; a kept file that was compared before is used without asking the server. */
  readonly sha256?: string | undefined;
  readonly retry?: Partial<RetryOptions>;
  /** Most bytes to hold in memory where the server sends only the whole file and there is no cache. */
  readonly memoryLimit?: number;
}

const kMemoryLimit = 512 * 1024 * 1024;

/** Opens an absolute `http:` or `https:` address. */
export async function openUrl(url: string, options: UrlOptions): Promise<OpenSource> {
  const notes: string[] = [];
  const folder = options.cache ? await openFolder(notes) : undefined;
  const found = await folder?.findDownload(url);
  const usable = found && !(options.tablesOnly && !isComplete(found));
  if (!usable) await found?.close();
  const kept = usable ? found : undefined;
  try {
    return await open(url, options, notes, folder, kept);
  } catch (error) {
    await kept?.close();
    throw error;
  }
}

async function openFolder(notes: string[]): Promise<CacheFolder | undefined> {
  const folder = await CacheFolder.open();
  if (typeof folder !== "string") return folder;
  // Node has no such storage, and nobody expects it there.
  if (typeof navigator !== "undefined" && "onLine" in navigator) notes.push(`The download is not kept for the next visit: ${folder}.`);
  return undefined;
}

function isComplete(kept: CachedFile): boolean {
  return firstMissing(kept.blocks) * BLOCK_BYTES >= kept.record.size;
}

async function open(url: string, options: UrlOptions, notes: string[], folder?: CacheFolder, kept?: CachedFile): Promise<OpenSource> {
  const complete = kept !== undefined && isComplete(kept);
  if (kept && complete && options.sha256 && kept.record.sha256 === options.sha256.toLowerCase()) return fromCache(url, kept, options, notes);
  let answer: Answer;
  try {
    answer = await firstAnswer(url, options, kept, complete);
  } catch (error) {
    const note = copyNote(error);
    if (!kept || !complete || note === undefined) throw error;
    notes.push(note);
    return fromCache(url, kept, options, notes);
  }
  try {
    if (kept && complete && isSame(kept, answer)) {
      answer.body.cancel().catch(() => undefined);
      return await fromCache(url, kept, options, notes);
    }
    return await fromServer(url, answer, options, notes, folder, kept);
  } catch (error) {
    answer.body.cancel().catch(() => undefined);
    throw error;
  }
}

/** What is said where a complete copy is used because of this; `undefined`: a copy is not better. */
export function copyNote(error: unknown): string | undefined {
  const unavailable = error instanceof HttpError ? error.status >= 500 || error.status === 429 : error instanceof PteryxError && error.code === "network";
  return unavailable ? `The copy in the cache is used, which may be out of date: ${(error as Error).message}.` : undefined;
}

/** Whether an address still has what a source of this identity was opened from. Asks for no more than that takes. Rejects as `openUrl` does. */
export async function isCurrent(url: string, identity: string, options: UrlOptions): Promise<boolean> {
  const answer = await firstAnswer(url, options, undefined, true);
  answer.body.cancel().catch(() => undefined);
  // Without a size from the server, the version alone is compared.
  return identity === versionIdentity(url, answer.version, answer.total ?? /\d*$/.exec(identity)![0]);
}

/**
 * Asks from the first missing byte on, or for the last byte of a complete copy, which is enough to see whether it is still the same file. Where it
 * is not, and where parts are not to be had, from the start.
 */
async function firstAnswer(url: string, options: UrlOptions, kept: CachedFile | undefined, complete: boolean): Promise<Answer> {
  const from = !kept ? 0 : complete ? kept.record.size - 1 : firstMissing(kept.blocks) * BLOCK_BYTES;
  try {
    const answer = await request(url, from, undefined, contact(options, complete));
    if (!kept || from === 0 || answer.start === 0 || isSame(kept, answer)) return answer;
    answer.body.cancel().catch(() => undefined);
  } catch (error) {
    if (!(error instanceof HttpError)) return withoutRange(url, contact(options, complete), error);
    if (error.status === 416 && from === 0) throw new PteryxError("invalid-program", `${url}: is empty`, { cause: error });
    if (error.status !== 416 && error.status !== 206) throw error;
  }
  return request(url, 0, undefined, contact(options, complete));
}

/** With a complete copy at hand a server that does not answer is not waited for as long. */
function contact(options: UrlOptions, complete: boolean): RequestOptions {
  const stallMs = options.retry?.stallMs ?? kRetry.stallMs;
  return { signal: options.signal, timeoutMs: complete ? stallMs / 5 : stallMs };
}

/** Browsers take a compressed answer to a request for a part as a broken connection: asks again for the whole. */
async function withoutRange(url: string, options: RequestOptions, error: unknown): Promise<Answer> {
  if (!(error instanceof PteryxError && error.code === "network" && error.cause instanceof TypeError)) throw error;
  return request(url, 0, undefined, { ...options, plain: true }).catch((again: unknown) => {
    throw again instanceof PteryxError && again.code !== "network" ? again : error;
  });
}

function isSame(kept: CachedFile, answer: Answer): boolean {
  const known = (kept.record.version.etag && answer.version.etag) || (kept.record.version.modified && answer.version.modified);
  const sameSize = answer.total === undefined || answer.total === kept.record.size;
  return Boolean(known) && sameSize && sameVersion(kept.record.version, answer.version);
}

async function fromCache(url: string, kept: CachedFile, options: UrlOptions, notes: string[]): Promise<OpenSource> {
  const { size, version } = kept.record;
  await kept.update({ complete: true });
  const remote: Remote = { url, size, version, ranges: true, plain: false, retry: { ...kRetry, ...options.retry } };
  const verified = options.sha256 !== undefined && kept.record.sha256 === options.sha256.toLowerCase();
  return new HttpSource({
    remote, store: kept.blocks, notes, ...common(options), ...(!verified && options.sha256 && { sha256: options.sha256 }), onComplete: keeper(kept, options),
    onDiscard: () => kept.remove(),
  });
}

function common(options: UrlOptions): { signal?: AbortSignal; onBytes?: (doneBytes: number, totalBytes: number) => void } {
  return { ...(options.signal && { signal: options.signal }), ...(options.onBytes && { onBytes: options.onBytes }) };
}

/** Notes in the record that a file is whole, or removes one whose hash is wrong. */
function keeper(file: CachedFile, options: UrlOptions): (valid: boolean) => Promise<void> {
  return async (valid) => {
    if (!valid) return file.remove();
    if (!file.record.complete || options.sha256) await file.update({ complete: true, ...(options.sha256 && { sha256: options.sha256.toLowerCase() }) });
  };
}

async function fromServer(
  url: string, answer: Answer, options: UrlOptions, notes: string[], folder?: CacheFolder, kept?: CachedFile): Promise<OpenSource> {
  const limit = options.memoryLimit ?? kMemoryLimit;
  const received = answer.total === undefined ? await receiveAll(url, answer, limit, options.signal) : undefined;
  const size = answer.total ?? received!.reduce((sum, block) => sum + block.length, 0);
  if (size === 0) throw new PteryxError("invalid-program", `${url}: is empty`);
  const keeps = folder !== undefined && !(options.tablesOnly && answer.ranges);
  const file = keeps ? await keptFile(url, size, answer.version, options, notes, folder, kept) : undefined;
  if (!file) await kept?.close();
  if (!file && !answer.ranges && size > limit) throw needsRanges(url, String(size));
  const store: BlockStore | undefined = file?.blocks ?? (answer.ranges ? undefined : new MemoryBlocks(size));
  try {
    for (const [index, block] of (received ?? []).entries()) if (!store!.has(index)) await store!.put(index, block);
  } catch (error) {
    store?.close();
    throw error;
  }
  const remote: Remote = {
    url, size, version: answer.version, ranges: answer.ranges, plain: answer.plain || answer.total === undefined, retry: { ...kRetry, ...options.retry },
  };
  return new HttpSource({
    remote, notes, ...common(options), ...(store && { store }), ...(options.sha256 && { sha256: options.sha256 }), ...(!received && { answer }),
    ...(file && { onComplete: keeper(file, options), onDiscard: () => file.remove() }),
  });
}

/** The folder of this version in the cache, where the version can be told from others. Rejects with the code `quota`. */
async function keptFile(
  url: string, size: number, version: Version, options: UrlOptions, notes: string[], folder: CacheFolder, kept?: CachedFile,
): Promise<CachedFile | undefined> {
  // Without a version the hash is one: nothing else was ever at this address that passed.
  const named = version.etag || version.modified ? version : { etag: options.sha256 ? `sha256:${options.sha256.toLowerCase()}` : "", modified: "" };
  if (!named.etag && !named.modified) {
    notes.push("The download is not kept for the next visit: the server sends neither ETag nor Last-Modified, so a change could not be noticed.");
    return undefined;
  }
  await kept?.close();
  const file = await folder.createDownload(url, size, named);
  try {
    await requireRoom(url, size - presentBytes(file.blocks));
  } catch (error) {
    if (presentBytes(file.blocks) === 0) await file.remove();
    else await file.close();
    throw error;
  }
  options.onKeep?.();
  return file;
}

// GGUF files, which become programs once and are then found in the cache. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { isNode } from "../platform.js";
import { createEntry, latestEntry, openEntry, removeDownload, type EntryWriter } from "../source/cache.js";
import { isGguf } from "../source/file_type.js";
import { createNodeEntry, downloadToFile, openNodeEntry } from "../source/node_entry.js";
import { addressOf, isAddress, isCacheEntry, openInput, type OpenOptions } from "../source/open_input.js";
import { copyNote, isCurrent } from "../source/open_url.js";
import { Sha256 } from "../source/sha256.js";
import { NotedSource, blocksOf, type OpenSource } from "../source/source.js";
import type { Input } from "../types.js";
import { convertGguf } from "./converter.js";

/** That of pteryx/convert/convert.h: conversions of another one are made anew. */
export const CONVERTER_VERSION = 2;

/** What is used of a GGUF file, beside where it is. */
export interface GgufOptions extends OpenOptions {
  /** The address of the converter's WebAssembly module. */
  readonly converter: URL;
  /** In Node: the folder where conversions are kept; none: they are temporary files. */
  readonly cacheFolder?: string | undefined;
  readonly cacheLimit?: number | undefined;
  readonly onConvert?: (doneBytes: number, totalBytes: number) => void;
}

const kTag = `gguf ${CONVERTER_VERSION}`;

/**
 * Opens a program, as `openInput` does; of a GGUF file, the program that is made of it. Rejects with the codes of `openInput`, and with `unsupported`
 * and `invalid-program` where the file cannot be converted.
 */
export async function openProgram(from: Input, options: GgufOptions): Promise<OpenSource> {
  const entry = isCacheEntry(from) ? from : undefined;
  if (entry?.kind === "conversion" && !isAddress(entry.url)) return openKept(entry.url, options);
  const input = entry?.url ?? from;
  const address = addressOf(input, options);
  const kept = options.cache && address !== undefined ? await findAtAddress(address, options) : undefined;
  if (kept !== undefined) return kept;
  const source = await openInput(input, options);
  try {
    if (!(await isGguf(source))) return source;
    return await programOf(source, address, options);
  } catch (error) {
    source.close();
    throw error;
  }
}

/** What was made of a file that the caller had once. */
async function openKept(name: string, { sha256 }: GgufOptions): Promise<OpenSource> {
  const kept = await (sha256 === undefined ? latestEntry(name, kTag) : openEntry(name, "conversion", { identity: hashIdentity(sha256), tag: kTag }));
  if (kept === undefined) throw new PteryxError("io", `${name}: is not in the cache any more. Choose the file again`);
  return kept;
}

/** The program of what is at an address, if it is kept. That is looked for first, so that no room is needed for another download. */
async function findAtAddress(address: string, options: GgufOptions): Promise<OpenSource | undefined> {
  // Of a file whose hash is known, nobody has to be asked.
  if (options.sha256 !== undefined) return openEntry(address, "conversion", { identity: hashIdentity(options.sha256), tag: kTag });
  const kept = await latestEntry(address, kTag);
  if (kept === undefined) return undefined;
  try {
    if (await isCurrent(address, kept.identity, options)) return kept;
  } catch (error) {
    const note = copyNote(error);
    if (note !== undefined) return new NotedSource(kept, [note]);
    // Whoever opens it next says what is wrong.
  }
  kept.close();
  return undefined;
}

function hashIdentity(sha256: string): string {
  return `sha256:${sha256.toLowerCase()}`;
}

/** `address`: where the source is on a server; none where it is at hand. */
async function programOf(source: OpenSource, address: string | undefined, options: GgufOptions): Promise<OpenSource> {
  const identity = await identityOf(source, address, options);
  const kept = await findKept(source, identity, options);
  if (kept !== undefined) {
    // A file of the caller's can be compared at hand; what is at an address was, before it was converted.
    if (address === undefined && options.sha256 !== undefined) await source.complete();
    source.close();
    return kept;
  }
  // In Node nothing keeps a download, and a conversion reads a file more than once.
  const local = isNode && address !== undefined ? await downloadToFile(source, options.signal) : source;
  let program: OpenSource;
  try {
    program = await convertGguf(local, {
      module: options.converter,
      version: CONVERTER_VERSION,
      ...(options.signal && { signal: options.signal }),
      ...(options.onConvert && { onProgress: options.onConvert }),
      createWriter: (bytes) => createWriter(source, identity, bytes, options),
    });
  } finally {
    local.close();
  }
  // What it was made of is not needed any more.
  if (address !== undefined && program.cached) await removeDownload(address).catch(() => undefined);
  return source.notes.length === 0 ? program : new NotedSource(program, source.notes);
}

async function findKept(source: OpenSource, identity: string, { cacheFolder }: GgufOptions): Promise<OpenSource | undefined> {
  if (identity === "") return undefined;
  return isNode ? openNodeEntry(cacheFolder!, source.name, identity, kTag) : openEntry(source.name, "conversion", { identity, tag: kTag });
}

async function createWriter(source: OpenSource, identity: string, expectedBytes: number, options: GgufOptions): Promise<EntryWriter> {
  const keep = identity !== "";
  if (isNode) {
    const { cacheFolder, cacheLimit: limit } = options;
    return createNodeEntry({ folder: keep ? cacheFolder : undefined, name: source.name, identity, tag: kTag, version: CONVERTER_VERSION, limit });
  }
  return createEntry(source.name, "conversion", { identity, tag: kTag, expectedBytes, keep });
}

/**
 * What tells one content from another: what the source says, or where that is nothing, all of its bytes. Empty where a conversion is not kept: without
 * a cache, and of what is on a server that says nothing of versions.
 */
async function identityOf(source: OpenSource, address: string | undefined, { sha256, cache, cacheFolder }: GgufOptions): Promise<string> {
  if (isNode ? cacheFolder === undefined : !cache) return "";
  if (sha256 !== undefined) return hashIdentity(sha256);
  if (source.identity !== "" || address !== undefined) return source.identity;
  // Pages without HTTPS have neither Web Crypto nor a cache, which the writer says.
  if (!crypto.subtle) return "unknown";
  const hash = new Sha256();
  for await (const block of blocksOf(source)) hash.update(new Uint8Array(await crypto.subtle.digest("SHA-256", block as Uint8Array<ArrayBuffer>)));
  return `blocks:${hash.hex()}`;
}

// Opens whatever the package's functions take. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { isNode } from "../platform.js";
import type { Input } from "../types.js";
import { parseUrl, type CacheEntry } from "./cache.js";
import { cancelled, throwIfAborted } from "./cancel.js";
import { checkFileType } from "./file_type.js";
import { openPath } from "./node_file.js";
import { openUrl, type UrlOptions } from "./open_url.js";
import { BlobSource, MemorySource, type OpenSource } from "./source.js";

/** Options of `openInput`. */
export interface OpenOptions extends UrlOptions {
  /** What relative addresses are relative to: the page's address, which a worker does not know. */
  readonly baseUrl?: string;
}

/**
 * Opens an address, a file, bytes or, in Node, a path. Rejects with a `PteryxError`: `http`, `network`, `io`, `quota`, `invalid-program` where a web
 * page or a picture is in place of a model, `invalid-argument` where the input is none of these, `cancelled`.
 */
export async function openInput(input: Input, options: OpenOptions): Promise<OpenSource> {
  const source = await open(input, options);
  try {
    await checkFileType(source);
    return source;
  } catch (error) {
    if (error instanceof PteryxError && error.code === "invalid-program") await source.discard?.();
    source.close();
    throw error;
  }
}

async function open(input: Input, options: OpenOptions): Promise<OpenSource> {
  const { signal, sha256 } = options;
  throwIfAborted(inputName(input), signal);
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw new PteryxError("invalid-argument", `SHA-256 must be 64 hexadecimal digits, got "${sha256}"`);
  }
  if (input instanceof Uint8Array) return local(new MemorySource(input, signal, sha256), options);
  if (input instanceof ArrayBuffer) return local(new MemorySource(new Uint8Array(input), signal, sha256), options);
  if (typeof Blob !== "undefined" && input instanceof Blob) return local(new BlobSource(input, signal, sha256), options);
  if (typeof input !== "string" && !(input instanceof URL)) {
    throw new PteryxError("invalid-argument", "expected an address, a file, an ArrayBuffer or a Uint8Array");
  }
  if (isPath(input)) return local(await openPath(input, signal, sha256), options);
  const url = urlOf(String(input), options);
  if (url.protocol === "blob:" || url.protocol === "data:") return local(new BlobSource(await fetchBlob(url, signal), signal, sha256), options);
  if (!isHttp(url)) throw new PteryxError("invalid-argument", `${url.href}: addresses begin with http: or https:`);
  return openUrl(url.href, options);
}

/** What the cache knows an input by: the absolute address of what is on a server. */
export function addressOf(input: Input, options: OpenOptions): string | undefined {
  if ((typeof input !== "string" && !(input instanceof URL)) || isPath(input)) return undefined;
  const url = urlOf(String(input), options);
  return isHttp(url) ? url.href : undefined;
}

/** Something on a server. */
export function isAddress(text: string): boolean {
  return /^https?:/.test(text);
}

/** What `cache.list` gives. */
export function isCacheEntry(input: unknown): input is CacheEntry {
  return typeof input === "object" && input !== null && "presentBytes" in input;
}

function isPath(input: string | URL): boolean {
  // A single letter before the colon is a Windows drive.
  const text = String(input);
  return isNode && (!/^[a-z][a-z0-9+.-]+:/i.test(text) || /^file:/i.test(text));
}

function urlOf(text: string, options: OpenOptions): URL {
  const base = options.baseUrl ?? (typeof location === "undefined" ? undefined : location.href);
  const url = text === "" ? undefined : parseUrl(text, base);
  if (url === undefined) throw new PteryxError("invalid-argument", `"${text}" is no address`);
  url.hash = "";
  return url;
}

function isHttp(url: URL): boolean {
  return url.protocol === "http:" || url.protocol === "https:";
}

function inputName(input: Input): string {
  if (typeof input === "string" || input instanceof URL) return String(input);
  return typeof File !== "undefined" && input instanceof File ? input.name : "bytes";
}

/** Everything is at hand. */
function local(source: OpenSource, options: OpenOptions): OpenSource {
  if (source.size === 0) {
    source.close();
    throw new PteryxError("invalid-program", `${source.name}: is empty`);
  }
  options.onBytes?.(source.size, source.size);
  return source;
}

async function fetchBlob(url: URL, signal?: AbortSignal): Promise<Blob> {
  try {
    return await (await fetch(url, signal ? { signal } : {})).blob();
  } catch (cause) {
    if (signal?.aborted) throw cancelled(url.protocol, signal);
    throw new PteryxError("io", `${url.href.slice(0, 80)}: cannot be read`, { cause });
  }
}

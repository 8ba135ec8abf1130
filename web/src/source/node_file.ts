// Files by path, in Node. SPDX-License-Identifier: BSD-3-Clause
import type { FileHandle } from "node:fs/promises";
import { PteryxError } from "../errors.js";
import { throwIfAborted } from "./cancel.js";
import { LocalSource, type OpenSource } from "./source.js";

// The name is no literal, and bundlers for browsers leave it alone.
export async function nodeModule<T>(name: string): Promise<T> {
  const id = `node:${name}`;
  return import(/* @vite-ignore */ /* webpackIgnore: true */ id) as Promise<T>;
}

/** A file by path or `file:` address. Rejects with the code `io`. */
export async function openPath(input: string | URL, signal?: AbortSignal, sha256?: string): Promise<OpenSource> {
  const { open } = await nodeModule<typeof import("node:fs/promises")>("fs/promises");
  const { fileURLToPath } = await nodeModule<typeof import("node:url")>("url");
  const path = /^file:/i.test(String(input)) ? fileURLToPath(input) : String(input);
  throwIfAborted(path, signal);
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (cause) {
    throw new PteryxError("io", `${path}: ${reason(cause)}`, { cause });
  }
  try {
    const info = await file.stat();
    if (!info.isFile()) throw new PteryxError("io", `${path}: is not a file`);
    return new PathSource(file, path, info.size, `file:${path}:${info.size}:${info.mtimeMs}`, signal, sha256);
  } catch (error) {
    await file.close();
    throw error;
  }
}

export function reason(error: unknown): string {
  const code = (error as { code?: string }).code;
  if (code === "ENOENT") return "no such file";
  if (code === "EACCES" || code === "EPERM") return "permission denied";
  if (code === "ENOSPC") return "no space is left on the disk";
  return error instanceof Error ? error.message : String(error);
}

export class PathSource extends LocalSource {
  constructor(readonly file: FileHandle, path: string, readonly size: number, identity: string, signal?: AbortSignal, sha256?: string) {
    super(path, identity, signal, sha256);
  }

  protected async fetch(offset: number, size: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(size);
    for (let done = 0; done < size;) {
      const count = await this.#readSome(bytes, done, offset + done);
      if (count === 0) throw new PteryxError("io", `${this.name}: ends at byte ${offset + done}, expected ${this.size}; it was changed while in use`);
      done += count;
    }
    return bytes;
  }
  async #readSome(bytes: Uint8Array, at: number, position: number): Promise<number> {
    try {
      return (await this.file.read(bytes, at, bytes.length - at, position)).bytesRead;
    } catch (cause) {
      throw new PteryxError("io", `${this.name}: ${reason(cause)}`, { cause });
    }
  }
  override close(): void {
    if (!this.closed) this.file.close().catch(() => undefined);
    super.close();
  }
}

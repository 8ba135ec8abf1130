// Files of the browser's private file system, on the page's thread and in workers. SPDX-License-Identifier: BSD-3-Clause
// Workers have handles that read and write at once, many times faster than the page's thread, which replaces a file as a whole.
import { PteryxError } from "../errors.js";
import { sleep } from "./cancel.js";
import { BLOCK_BYTES, blockLength, type BlockStore } from "./blocks.js";

type SyncMode = { mode: "read-only" | "readwrite" };
type SyncFile = FileSystemFileHandle & { createSyncAccessHandle(options?: SyncMode): Promise<FileSystemSyncAccessHandle> };

function errorName(error: unknown): string {
  return error instanceof Error || error instanceof DOMException ? error.name : "";
}
export function isMissing(error: unknown): boolean {
  return errorName(error) === "NotFoundError";
}
/** Another tab has the file open. */
function isLocked(error: unknown): boolean {
  return ["NoModificationAllowedError", "InvalidStateError"].includes(errorName(error));
}

function hasSync(): boolean {
  return typeof FileSystemFileHandle !== "undefined" && "createSyncAccessHandle" in FileSystemFileHandle.prototype;
}
function hasWritable(): boolean {
  return typeof FileSystemFileHandle !== "undefined" && "createWritable" in FileSystemFileHandle.prototype;
}

/** The folder of the cache, or a sentence on why there is none. */
export async function openCacheFolder(): Promise<FileSystemDirectoryHandle | string> {
  const storage = globalThis.navigator?.storage;
  if (globalThis.isSecureContext === false) return "the page is not served over HTTPS";
  if (typeof storage?.getDirectory !== "function" || !(hasSync() || hasWritable())) return "there is no private file system here";
  try {
    return await (await storage.getDirectory()).getDirectoryHandle("pteryx", { create: true });
  } catch (error) {
    return `the browser does not allow it (${errorName(error) || String(error)})`;
  }
}

/** `quota` with the bytes that are free, or `io`. */
export async function storageError(name: string, error: unknown, neededBytes: number): Promise<PteryxError> {
  if (error instanceof PteryxError) return error;
  if (errorName(error) === "QuotaExceededError") return quotaError(name, neededBytes, await freeBytes(), error);
  return new PteryxError("io", `${name}: the cache cannot be written: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}
export function quotaError(name: string, neededBytes: number, free: number | undefined, cause?: unknown): PteryxError {
  // Chromium's estimate may promise more than it gives.
  const room = free === undefined || free >= neededBytes ? "" : `, ${megabytes(free)} are free`;
  const message = `${name}: the browser's storage is full: ${megabytes(neededBytes)} are needed${room}. Delete models from the cache, or load without it`;
  return new PteryxError("quota", message, { cause: { neededBytes, freeBytes: free, error: cause } });
}
function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
}
/** What the browser still lets this origin store. */
export async function freeBytes(): Promise<number | undefined> {
  const estimate = await globalThis.navigator?.storage?.estimate?.().catch(() => undefined);
  return estimate?.quota === undefined ? undefined : Math.max(0, estimate.quota - (estimate.usage ?? 0));
}

/** Replaces a small file. One that was cut short by a crash does not parse, and so counts as absent. */
export async function writeText(folder: FileSystemDirectoryHandle, name: string, text: string): Promise<void> {
  const file = await folder.getFileHandle(name, { create: true });
  const bytes = new TextEncoder().encode(text);
  if (hasWritable()) return writeWhole(file, [bytes]);
  const handle = await (file as SyncFile).createSyncAccessHandle();
  try {
    handle.truncate(0);
    writeAll(handle, bytes, 0);
    handle.flush();
  } finally {
    handle.close();
  }
}
export async function readText(folder: FileSystemDirectoryHandle, name: string): Promise<string> {
  return (await (await folder.getFileHandle(name)).getFile()).text();
}

async function writeWhole(file: FileSystemFileHandle, parts: readonly Uint8Array[]): Promise<void> {
  const writable = await file.createWritable();
  try {
    for (const part of parts) await writable.write(part as Uint8Array<ArrayBuffer>);
    await writable.close();
  } catch (error) {
    await writable.abort().catch(() => undefined);
    throw error;
  }
}
function writeAll(handle: FileSystemSyncAccessHandle, bytes: Uint8Array, at: number): void {
  const written = handle.write(bytes as Uint8Array<ArrayBuffer>, { at });
  if (written !== bytes.length) throw new DOMException(`${written} of ${bytes.length} bytes were written`, "QuotaExceededError");
}

// A block's file ends with this mark, written after the block is on the disk: a file without it was cut short.
const kMark = new TextEncoder().encode("pteryx block end");

/**
 * Blocks as files of one folder. A file is written once and then only read, so tabs do not disturb each other: the folder belongs to one version
 * of one file, and whoever finishes a block first is right.
 */
export class OpfsBlocks implements BlockStore {
  readonly #present = new Set<number>();
  readonly #checked = new Set<number>();

  /** `recreate`: gives the folder anew after another tab removed it. */
  constructor(
    readonly name: string, public size: number, private folder: FileSystemDirectoryHandle,
    private readonly recreate: () => Promise<FileSystemDirectoryHandle>, private readonly onClose: () => void) {}

  /** Finds the blocks that are there by their sizes; where all are known to be there, believes it. `get` looks at the mark. */
  async scan(complete: boolean): Promise<void> {
    const count = Math.ceil(this.size / BLOCK_BYTES);
    if (complete) {
      for (let index = 0; index < count; index++) this.#present.add(index);
      return;
    }
    const sizes: Promise<void>[] = [];
    for await (const [name, handle] of this.folder.entries()) {
      const index = /^b\d+$/.test(name) ? Number(name.slice(1)) : count;
      if (index >= count || handle.kind !== "file") continue;
      const look = async (): Promise<void> => {
        const file = await (handle as FileSystemFileHandle).getFile().catch(() => undefined);
        if (file?.size === this.#fileBytes(index)) this.#present.add(index);
      };
      sizes.push(look());
    }
    await Promise.all(sizes);
  }

  has(index: number): boolean {
    return this.#present.has(index);
  }

  async put(index: number, bytes: Uint8Array): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        await this.#write(index, bytes);
        break;
      } catch (error) {
        if (isLocked(error) && tries < 100) {
          // Another tab writes or reads this very block.
          await sleep(20);
          if (await this.get(index, 0, 0, true)) break;
        } else if (isMissing(error) && tries < 3) {
          this.#present.clear();
          this.folder = await this.recreate();
        } else if (errorName(error) !== "QuotaExceededError" && tries < 2) {
          // Where room runs out in the middle of a write, Chromium may only say that it could not write; the next try says why.
          await sleep(20);
        } else {
          throw await storageError(this.name, error, this.size === Infinity ? bytes.length : this.size);
        }
      }
    }
    this.#present.add(index);
  }

  async #write(index: number, bytes: Uint8Array): Promise<void> {
    const file = await this.folder.getFileHandle(`b${index}`, { create: true });
    if (!hasSync()) return writeWhole(file, [bytes, kMark]);
    const handle = await (file as SyncFile).createSyncAccessHandle();
    try {
      handle.truncate(0);
      writeAll(handle, bytes, 0);
      handle.flush();
      writeAll(handle, kMark, bytes.length);
      handle.flush();
    } finally {
      handle.close();
    }
  }

  async get(index: number, from: number, to: number, anew = false): Promise<Uint8Array | undefined> {
    if (!this.#present.has(index) && !anew) return undefined;
    try {
      const file = await this.folder.getFileHandle(`b${index}`);
      const bytes = hasSync() ? await this.#readSync(file as SyncFile, index, from, to) : await this.#readBlob(file, index, from, to);
      if (bytes) return bytes;
    } catch (error) {
      if (!isMissing(error) && !isLocked(error) && errorName(error) !== "NotReadableError") throw await storageError(this.name, error, 0);
    }
    this.#present.delete(index);
    return undefined;
  }

  async #readSync(file: SyncFile, index: number, from: number, to: number): Promise<Uint8Array | undefined> {
    let handle: FileSystemSyncAccessHandle;
    try {
      handle = await file.createSyncAccessHandle({ mode: "read-only" });
    } catch (error) {
      if (!isLocked(error)) throw error;
      return this.#readBlob(file, index, from, to);
    }
    try {
      if (handle.getSize() !== this.#fileBytes(index)) return undefined;
      const mark = new Uint8Array(kMark.length);
      handle.read(mark, { at: handle.getSize() - kMark.length });
      if (!isMark(mark)) return undefined;
      const bytes = new Uint8Array(to - from);
      return handle.read(bytes, { at: from }) === bytes.length ? bytes : undefined;
    } finally {
      handle.close();
    }
  }

  async #readBlob(file: FileSystemFileHandle, index: number, from: number, to: number): Promise<Uint8Array | undefined> {
    const blob = await file.getFile();
    if (blob.size !== this.#fileBytes(index)) return undefined;
    if (!this.#checked.has(index)) {
      if (!isMark(new Uint8Array(await blob.slice(blob.size - kMark.length).arrayBuffer()))) return undefined;
      this.#checked.add(index);
    }
    return new Uint8Array(await blob.slice(from, to).arrayBuffer());
  }

  #fileBytes(index: number): number {
    return blockLength(this.size, index) + kMark.length;
  }

  close(): void {
    this.onClose();
  }
}

function isMark(bytes: Uint8Array): boolean {
  return bytes.length === kMark.length && bytes.every((byte, at) => byte === kMark[at]);
}

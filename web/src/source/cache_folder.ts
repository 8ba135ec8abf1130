// The cache's folders: one for each version of a file, with its blocks and a record. SPDX-License-Identifier: BSD-3-Clause
// A download's record is written before its blocks, so that it can be continued; a conversion's after them, so that it counts only when finished.
// A folder without a record that no tab holds is what a killed browser left behind, and is removed.
import type { Version } from "./http.js";
import { OpfsBlocks, isMissing, openCacheFolder, readText, storageError, writeText } from "./opfs.js";
import { sha256Hex } from "./sha256.js";

/** `download`: a copy of what is at an address; `conversion`: a program made from another file. */
export type CacheKind = "download" | "conversion";

/** What is known of a folder. */
export interface FolderRecord {
  readonly format: 1;
  readonly key: string;
  readonly kind: CacheKind;
  /** Of conversions: the source's, and what else the content depends on. */
  readonly identity: string;
  readonly tag: string;
  readonly size: number;
  readonly version: Version;
  /** Every block was there once. */
  readonly complete: boolean;
  /** Of the whole, after it was compared; else empty. */
  readonly sha256: string;
  readonly lastUsedMs: number;
}

const kRecord = "record.json";

/** One folder in use. */
export class CachedFile {
  private constructor(
    readonly folderName: string, public record: FolderRecord, readonly blocks: OpfsBlocks, private readonly folder: CacheFolder,
    private readonly release: () => Promise<void>) {}

  /** `fresh`: the folder or its record is not there yet. */
  static async open(folder: CacheFolder, name: string, record: FolderRecord, fresh = false): Promise<CachedFile> {
    const release = await holdLock(name);
    try {
      const create = async (): Promise<FileSystemDirectoryHandle> => {
        const handle = await folder.handle.getDirectoryHandle(name, { create: true });
        if (record.kind === "download") await writeText(handle, kRecord, JSON.stringify({ ...record, complete: false }));
        return handle;
      };
      const handle = fresh ? await create() : await folder.handle.getDirectoryHandle(name);
      const blocks = new OpfsBlocks(record.key, record.size, handle, create, () => void release());
      if (record.size !== Infinity) await blocks.scan(record.complete);
      return new CachedFile(name, record, blocks, folder, release);
    } catch (error) {
      await release();
      throw await storageError(record.key, error, record.size);
    }
  }

  /** Writes the record with these changes. */
  async update(changes: Partial<FolderRecord>): Promise<void> {
    this.record = { ...this.record, ...changes, lastUsedMs: Date.now() };
    try {
      await writeText(await this.folder.handle.getDirectoryHandle(this.folderName), kRecord, JSON.stringify(this.record));
    } catch (error) {
      // Removed or in use by another tab: the next visit finds out by itself what is there.
      if (this.record.kind === "conversion") throw await storageError(this.record.key, error, this.record.size);
    }
  }

  /** Tells when it was last used, as far as that can be written: where no room is left, what is kept can be read all the same. */
  async touch(): Promise<void> {
    await this.update({}).catch(() => undefined);
  }

  /** Resolves when other tabs see that it is not in use. */
  async close(): Promise<void> {
    this.blocks.close();
    await this.release();
  }

  async remove(): Promise<void> {
    await this.close();
    await this.folder.remove(this.folderName);
  }

  /** Removes conversions that this one replaces: those from another version of the same source, and others of the same settings. */
  async replaceOthers(): Promise<void> {
    const { key, identity, tag } = this.record;
    await this.folder.removeUnused(key, ({ name, record }) => {
      return name !== this.folderName && record.kind === "conversion" && (record.identity !== identity || record.tag === tag);
    });
  }
}

/** The folder of all of them. */
export class CacheFolder {
  private constructor(readonly handle: FileSystemDirectoryHandle) {}

  static #swept: Promise<void> | undefined;

  /** The cache, or a sentence on why there is none. Opened anew each time: the user may have removed all of the site's data. */
  static async open(): Promise<CacheFolder | string> {
    const handle = await openCacheFolder();
    if (typeof handle === "string") return handle;
    const folder = new CacheFolder(handle);
    await (this.#swept ??= folder.#sweep().catch(() => undefined));
    return folder;
  }

  /** Every folder with its record, the last used first. */
  async records(key?: string): Promise<{ name: string; record: FolderRecord }[]> {
    const prefix = key === undefined ? "" : keyPrefix(key);
    const reads: Promise<{ name: string; record: FolderRecord } | undefined>[] = [];
    try {
      for await (const [name, handle] of this.handle.entries()) {
        if (handle.kind !== "directory" || !name.startsWith(prefix)) continue;
        reads.push(readRecord(handle as FileSystemDirectoryHandle).then((record) => record && { name, record }));
      }
    } catch (error) {
      throw await storageError("cache", error, 0);
    }
    const found = (await Promise.all(reads)).filter((entry) => entry !== undefined);
    return found.sort((a, b) => b.record.lastUsedMs - a.record.lastUsedMs);
  }

  /** What is there of an address, the last used version. */
  async findDownload(url: string): Promise<CachedFile | undefined> {
    const found = (await this.records(url)).find(({ record }) => record.kind === "download");
    return found && CachedFile.open(this, found.name, found.record).catch(() => undefined);
  }

  /** A folder for one version of what is at an address; other versions of it are removed, unless a tab uses them. */
  async createDownload(url: string, size: number, version: Version): Promise<CachedFile> {
    const name = `${keyPrefix(url)}${sha256Hex(JSON.stringify(["download", version.etag || version.modified, size])).slice(0, 16)}`;
    await this.removeUnused(url, (old) => old.record.kind === "download" && old.name !== name);
    const found = (await this.records(url)).find((old) => old.name === name)?.record;
    return CachedFile.open(this, name, found ?? record(url, "download", { size, version }), found === undefined);
  }

  /** A finished one; of any identity, where none is given, the last used. */
  async findConversion(key: string, identity: string | undefined, tag: string): Promise<CachedFile | undefined> {
    const found = (await this.records(key)).find(({ record }) => {
      return record.kind === "conversion" && (identity === undefined || record.identity === identity) && record.tag === tag && record.complete;
    });
    return found && CachedFile.open(this, found.name, found.record).catch(() => undefined);
  }

  /** A folder of its own for each call, without a record until `update`. */
  createConversion(key: string, identity: string, tag: string): Promise<CachedFile> {
    const random = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return CachedFile.open(this, `${keyPrefix(key)}${random}`, record(key, "conversion", { identity, tag }), true);
  }

  /** Removes those folders of a key that no tab uses. */
  async removeUnused(key: string, which: (folder: { name: string; record: FolderRecord }) => boolean): Promise<void> {
    for (const { name } of (await this.records(key)).filter(which)) await ifUnused(name, () => this.remove(name));
  }

  /** Removes a folder, its record first: what another tab keeps open goes with the next sweep. */
  async remove(name: string): Promise<void> {
    try {
      const folder = await this.handle.getDirectoryHandle(name);
      await folder.removeEntry(kRecord).catch((error: unknown) => {
        if (!isMissing(error)) throw error;
      });
      await this.handle.removeEntry(name, { recursive: true }).catch(() => undefined);
    } catch (error) {
      if (!isMissing(error)) throw await storageError("cache", error, 0);
    }
  }

  async #sweep(): Promise<void> {
    if (!globalThis.navigator?.locks) return;
    for await (const [name, handle] of this.handle.entries()) {
      const isLeft = async (): Promise<boolean> => handle.kind === "directory" && !(await readRecord(handle as FileSystemDirectoryHandle));
      const remove = async (): Promise<void> => {
        if (await isLeft()) await this.handle.removeEntry(name, { recursive: true }).catch(() => undefined);
      };
      if (await isLeft()) await ifUnused(name, remove);
    }
  }
}

function keyPrefix(key: string): string {
  return `${sha256Hex(key).slice(0, 24)}-`;
}

function record(key: string, kind: CacheKind, known: Partial<FolderRecord>): FolderRecord {
  const none = { identity: "", tag: "", size: Infinity, version: { etag: "", modified: "" }, complete: false, sha256: "" };
  return { format: 1, key, kind, ...none, ...known, lastUsedMs: Date.now() };
}

/** `undefined` where there is none, or none that can be understood. */
async function readRecord(folder: FileSystemDirectoryHandle): Promise<FolderRecord | undefined> {
  try {
    const read = JSON.parse(await readText(folder, kRecord)) as FolderRecord;
    const known = read.format === 1 && typeof read.key === "string" && Number.isSafeInteger(read.size) && typeof read.version?.etag === "string";
    return known ? read : undefined;
  } catch {
    return undefined;
  }
}

function lockName(folder: string): string {
  return `pteryx-cache-${folder}`;
}

/** Tells other tabs that a folder is in use, until the result is called or the tab is gone. */
async function holdLock(folder: string): Promise<() => Promise<void>> {
  const locks = globalThis.navigator?.locks;
  if (!locks) return async () => undefined;
  return new Promise((resolve) => {
    const taken: Promise<void> = locks.request(lockName(folder), { mode: "shared" }, () => new Promise<void>((end) => {
      resolve(() => {
        end();
        return taken;
      });
    })).catch(() => resolve(async () => undefined));
  });
}

/** Does something with a folder while no tab uses it, or nothing where one does. */
async function ifUnused(folder: string, task: () => Promise<void>): Promise<void> {
  const locks = globalThis.navigator?.locks;
  if (!locks) return task();
  await locks.request(lockName(folder), { ifAvailable: true }, (lock) => lock && task());
}

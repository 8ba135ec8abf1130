// Conversions as files, in Node: in the folder where the command-line tool keeps its own, or without a name. SPDX-License-Identifier: BSD-3-Clause
// An entry is KEY.pte with KEY.json beside it, which is written last: a program without one does not count.
import type { FileHandle } from "node:fs/promises";
import { PteryxError } from "../errors.js";
import { BLOCK_BYTES } from "./blocks.js";
import type { EntryWriter } from "./cache.js";
import { throwIfAborted } from "./cancel.js";
import { PathSource, nodeModule, reason } from "./node_file.js";
import { sha256Hex } from "./sha256.js";
import { NamedSource, type OpenSource } from "./source.js";

type Fs = typeof import("node:fs/promises");

/** Which conversion of which file. */
export interface NodeEntryOptions {
  /** Where it is kept; none: it goes with the process. */
  readonly folder: string | undefined;
  /** Of what is converted. */
  readonly name: string;
  readonly identity: string;
  readonly tag: string;
  /** The converter's. */
  readonly version: number;
  /** Bytes that the folder may hold; 32 GiB unless told. */
  readonly limit?: number | undefined;
}

const kPartialMs = 24 * 3600 * 1000;

function keyOf(identity: string, tag: string): string {
  return sha256Hex(JSON.stringify([identity, tag])).slice(0, 32);
}

/** Opens what `createNodeEntry` made and finished; `undefined` where there is none, or it was cut short. */
export async function openNodeEntry(folder: string, name: string, identity: string, tag: string): Promise<OpenSource | undefined> {
  const fs = await nodeModule<Fs>("fs/promises");
  const base = `${folder}/${keyOf(identity, tag)}`;
  try {
    const about = JSON.parse(await fs.readFile(`${base}.json`, "utf8")) as { bytes?: number };
    const info = await fs.stat(`${base}.pte`);
    if (!info.isFile() || info.size !== about.bytes) return undefined;
    const now = new Date();
    await fs.utimes(`${base}.pte`, now, now).catch(() => undefined); // what was used longest ago goes first
    return new NamedSource(new PathSource(await fs.open(`${base}.pte`, "r"), `${base}.pte`, info.size, identity), name);
  } catch {
    return undefined;
  }
}

/** Begins an entry. Rejects with the code `io`. */
export async function createNodeEntry(options: NodeEntryOptions): Promise<EntryWriter> {
  const fs = await nodeModule<Fs>("fs/promises");
  const { tmpdir } = await nodeModule<typeof import("node:os")>("os");
  const { randomBytes } = await nodeModule<typeof import("node:crypto")>("crypto");
  const { folder } = options;
  const place = folder ?? tmpdir();
  const base = `${place}/${folder === undefined ? "pteryx" : keyOf(options.identity, options.tag)}`;
  const partial = `${base}.${randomBytes(4).toString("hex")}.partial`;
  try {
    if (folder !== undefined) await fs.mkdir(folder, { recursive: true, mode: 0o700 });
    const file = await fs.open(partial, "wx+", 0o600);
    // Without a name, nothing is left of it even where the process is killed.
    if (folder === undefined) await fs.unlink(partial);
    return folder === undefined ? new TemporaryWriter(file, options) : new KeptWriter(file, options, fs, partial, base);
  } catch (cause) {
    throw new PteryxError("io", `${place}: no room for the conversion of ${options.name}: ${reason(cause)}`, { cause });
  }
}

/** What both kinds of files have in common. */
abstract class FileWriter implements EntryWriter {
  readonly note = "";

  constructor(readonly file: FileHandle, readonly options: NodeEntryOptions) {}

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    try {
      for (let at = 0; at < bytes.length;) at += (await this.file.write(bytes, at, bytes.length - at, offset + at)).bytesWritten;
    } catch (cause) {
      throw this.failed(cause);
    }
  }
  async read(offset: number, size: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(size);
    await this.file.read(bytes, 0, size, offset);
    return bytes;
  }
  async flush(): Promise<void> {}
  abstract finish(size: number): Promise<OpenSource>;
  abstract abort(): Promise<void>;

  protected failed(cause: unknown): PteryxError {
    const full = ["ENOSPC", "EDQUOT", "EFBIG"].includes((cause as { code?: string }).code ?? "");
    return new PteryxError(full ? "quota" : "io", `the conversion of ${this.options.name} cannot be written: ${reason(cause)}`, { cause });
  }
}

class TemporaryWriter extends FileWriter {
  async finish(size: number): Promise<OpenSource> {
    return new PathSource(this.file, this.options.name, size, this.options.identity);
  }
  async abort(): Promise<void> {
    await this.file.close();
  }
}

class KeptWriter extends FileWriter {
  constructor(file: FileHandle, options: NodeEntryOptions, readonly fs: Fs, readonly partial: string, readonly base: string) {
    super(file, options);
  }

  async finish(size: number): Promise<OpenSource> {
    const { fs, base, partial, options } = this;
    try {
      await this.file.sync();
      await fs.rm(`${base}.json`, { force: true });
      await fs.rename(partial, `${base}.pte`);
      const about = { source: options.name, identity: options.identity, bytes: size, converter: options.version };
      await fs.writeFile(`${partial}.json`, `${JSON.stringify(about, undefined, 2)}\n`, { mode: 0o600 });
      await fs.rename(`${partial}.json`, `${base}.json`);
      await this.#makeRoom().catch(() => undefined);
      return new NamedSource(new PathSource(this.file, `${base}.pte`, size, options.identity), options.name);
    } catch (cause) {
      throw this.failed(cause);
    }
  }
  async abort(): Promise<void> {
    await this.file.close();
    await this.fs.rm(this.partial, { force: true });
  }

  /** Removes what was used longest ago where the folder holds more than it may, and what others left behind. */
  async #makeRoom(): Promise<void> {
    const { fs, base } = this;
    const { folder, limit = 32 * 2 ** 30 } = this.options;
    const names = await fs.readdir(folder!);
    const files = await Promise.all(names.map(async (name) => ({ path: `${folder}/${name}`, ...(await fs.stat(`${folder}/${name}`)) })));
    let sum = 0;
    for (const { path, size, mtimeMs } of files.sort((a, b) => b.mtimeMs - a.mtimeMs)) {
      // What a killed process left.
      if (/\.partial(\.json)?$/.test(path) && Date.now() - mtimeMs > kPartialMs) await fs.rm(path, { force: true });
      if (!path.endsWith(".pte")) continue;
      sum += size;
      if (sum <= limit || path === `${base}.pte`) continue;
      await fs.rm(path, { force: true });
      await fs.rm(path.replace(/\.pte$/, ".json"), { force: true });
    }
  }
}

/** A copy of what is on a server, in a file that goes with the process. */
export async function downloadToFile(source: OpenSource, signal?: AbortSignal): Promise<OpenSource> {
  const writer = await createNodeEntry({ folder: undefined, name: source.name, identity: source.identity, tag: "", version: 0 });
  try {
    source.beginDownload();
    for (let at = 0; at < source.size; at += BLOCK_BYTES) {
      throwIfAborted(source.name, signal);
      await writer.write(at, await source.read(at, Math.min(BLOCK_BYTES, source.size - at)));
    }
    await source.complete();
    const copy = await writer.finish(source.size);
    source.close();
    return copy;
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

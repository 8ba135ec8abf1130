// The converter's module, step by step: reads a GGUF file, writes a program. SPDX-License-Identifier: BSD-3-Clause
import { hasSimd } from "../engine/simd.js";
import { Wasm, compileModule } from "../engine/wasm.js";
import { PteryxError } from "../errors.js";
import type { EntryWriter } from "../source/cache.js";
import { throwIfAborted } from "../source/cancel.js";
import { NotedSource, type OpenSource } from "../source/source.js";

/** What a conversion is made with. */
export interface ConvertOptions {
  /** Where the module is. */
  readonly module: URL;
  /** Of the converter that is expected there. */
  readonly version: number;
  readonly signal?: AbortSignal;
  /** In bytes of the source. */
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
  /** Called once, when the size of the program is known. */
  readonly createWriter: (bytes: number) => Promise<EntryWriter>;
}

// What may be on its way to the writer while the module goes on.
const kQueuedBytes = 8 << 20;

/** Takes what the module writes, and hands it on in order. */
class Output {
  readonly #queue: { offset: number; bytes: Uint8Array }[] = [];
  #queuedBytes = 0;
  #writer: EntryWriter | undefined;

  constructor(readonly createWriter: () => Promise<EntryWriter>) {}

  add(offset: number, bytes: Uint8Array): void {
    this.#queue.push({ offset, bytes });
    this.#queuedBytes += bytes.length;
  }
  /** Writes until little is left. Rejects with the writer's error. */
  async drain(most = 0): Promise<void> {
    while (this.#queuedBytes > most) {
      const { offset, bytes } = this.#queue.shift()!;
      this.#writer ??= await this.createWriter();
      await this.#writer.write(offset, bytes);
      this.#queuedBytes -= bytes.length;
    }
  }
  async finish(size: number): Promise<OpenSource> {
    await this.drain();
    const program = await this.#writer!.finish(size);
    return this.#writer!.note === "" ? program : new NotedSource(program, [`The conversion is not kept for the next visit: ${this.#writer!.note}.`]);
  }
  async abort(): Promise<void> {
    await this.#writer?.abort().catch(() => undefined);
  }
}

/**
 * Makes a program of a GGUF file. Rejects with `invalid-program` and `unsupported` where that is impossible, with the codes of the source and the
 * writer, and with `cancelled`; nothing is left behind then. The source stays open.
 */
export async function convertGguf(source: OpenSource, options: ConvertOptions): Promise<OpenSource> {
  if (!hasSimd()) throw new PteryxError("unsupported", `${source.name}: WebAssembly has no SIMD here, which converting a GGUF file needs. Convert it with pteryx convert first`);
  let job = 0;
  const output = new Output(() => options.createWriter(wasm.call("convert_bytes", job)));
  const wasm = await Wasm.instantiate(await compileModule(options.module, options.signal), {
    more: (host) => ({
      output_write: (_: number, offset: number, address: number, size: number): void => output.add(offset, host.memory.view(address, size).slice()),
    }),
  });
  const version = wasm.call("converter_version");
  if (version !== options.version) {
    throw new PteryxError("wasm", `${options.module.href}: is version ${version} of the converter, expected ${options.version}: the package's files do not belong together`);
  }
  // The module closes what it is given; the source is the caller's.
  const { id } = wasm.sources.add({ name: source.name, size: source.size, read: (offset, size) => source.read(offset, size), close: () => undefined });
  try {
    job = wasm.checkText("convert_begin", [0, id, source.size], source.name);
    await run(wasm, job, source, output, options);
    const { bytes, warnings } = wasm.json() as { bytes: number; warnings: string[] };
    await source.complete();
    throwIfAborted(source.name, options.signal);
    const program = await output.finish(bytes);
    options.onProgress?.(source.size, source.size);
    return warnings.length === 0 ? program : new NotedSource(program, warnings.map((text) => `${text}.`));
  } catch (error) {
    await output.abort();
    throw error;
  } finally {
    if (job !== 0) wasm.call("convert_free", job);
  }
}

async function run(wasm: Wasm, job: number, source: OpenSource, output: Output, options: ConvertOptions): Promise<void> {
  let downloading = false;
  for (;;) {
    throwIfAborted(source.name, options.signal);
    if (wasm.check("convert_advance", job) !== 0) return;
    // A file that cannot be converted is refused by its header, before the rest of it is fetched.
    if (!downloading && wasm.call("convert_is_open", job) !== 0) {
      downloading = true;
      source.beginDownload();
    }
    await output.drain(kQueuedBytes);
    if (downloading) options.onProgress?.(Math.floor(wasm.call("convert_fraction", job) * source.size), source.size);
    if (wasm.sources.waiting) await wasm.host.next();
    else await wasm.host.breathe();
  }
}

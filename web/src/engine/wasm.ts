// The WebAssembly module: fetched, compiled, and called with JavaScript's own values. SPDX-License-Identifier: BSD-3-Clause
import { isOutOfMemory, missingPart, PteryxError, type ErrorCode } from "../errors.js";
import { isNode } from "../node_check.js";
import { cancelled } from "../source/cancel.js";
import { Gpus } from "./gpu_imports.js";
import { Host, kTurnMs } from "./host.js";
import { makeNumberImports } from "./number_imports.js";
import { Sources } from "./source_imports.js";
import { makeTextImports } from "./text_imports.js";
import { makeWasiImports } from "./wasi_imports.js";

type Exported = (...args: number[]) => number;

/** Tells how far a load is; false ends it. */
export type ProgressListener = (what: string, done: number, total: number) => boolean;

/** What calls of the module give; see result.h. */
const Called = { failed: -1, later: 0 } as const;

/** Text of a script may hold halves of characters, which JSON of the module's may not. */
const wellFormed = (_name: string, value: unknown): unknown => (typeof value === "string" ? ((value as { toWellFormed?(): string }).toWellFormed?.() ?? value) : value);

const compiled = new Map<string, WebAssembly.Module>();

/** Fetches and compiles a module, once on a thread. Rejects with the code `wasm` and the reason. */
export async function compileModule(url: URL, signal: AbortSignal | undefined): Promise<WebAssembly.Module> {
  const known = compiled.get(url.href);
  if (known !== undefined) return known;
  const module = await usePart(url, "the WebAssembly module", signal, async (response) => {
    const type = response.headers.get("Content-Type") ?? "";
    return type.startsWith("application/wasm") ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
  });
  compiled.set(url.href, module);
  return module;
}

/** What `use` makes of a file of the package. Rejects with the code `wasm` and the reason, or `cancelled`. */
export async function usePart<T>(url: URL, what: string, signal: AbortSignal | undefined, use: (response: Response) => Promise<T>): Promise<T> {
  try {
    if (isNode && url.protocol === "file:") {
      const { readFile } = (await import(/* @vite-ignore */ "node:fs/promises" as string)) as typeof import("node:fs/promises");
      return await use(new Response(new Uint8Array(await readFile(url))));
    }
    const response = await fetch(url, signal ? { signal } : {});
    if (!response.ok) throw new Error(`the server answered ${response.status} ${response.statusText}`.trimEnd());
    return await use(response);
  } catch (error) {
    if (signal?.aborted) throw cancelled(what, signal);
    const reason = error instanceof Error ? error.message : String(error);
    throw missingPart(`${what} ${url.href}`, `cannot be used: ${reason}`, error);
  }
}

/** One instance of the module. Calls give a handle or `true`; a failed one throws a `PteryxError`. */
export class Wasm {
  readonly host = new Host();
  readonly sources = new Sources(this.host);
  readonly gpus = new Gpus(this.host, this.sources);
  readonly listeners = new Map<number, ProgressListener>();
  #exports!: Record<string, Exported>;
  /** Why the module stopped working, which it does for good. */
  #trap: PteryxError | undefined;
  /** Milliseconds in which the thread worked: in the module, its imports and what `busy` was given. */
  busyMs = 0;
  #isBusy = false;

  /** `memory`: of a module that shares it with threads, and so does not bring its own. `more`: imports that only this module has. */
  static async instantiate(
    module: WebAssembly.Module,
    { memory, more }: { readonly memory?: WebAssembly.Memory; readonly more?: (host: Host) => WebAssembly.ModuleImports } = {},
  ): Promise<Wasm> {
    const wasm = new Wasm();
    const { host } = wasm;
    const imports = {
      pteryx: {
        ...host.messageImports(),
        ...wasm.sources.imports(),
        ...wasm.gpus.imports(),
        ...makeTextImports(host.memory),
        ...makeNumberImports(host.memory),
        progress: (job: number, what: number, size: number, done: number, total: number): number =>
          (wasm.listeners.get(job)?.(host.memory.text(what, size), done, total) ?? true) ? 1 : 0,
        ...more?.(host),
      },
      wasi_snapshot_preview1: makeWasiImports(host.memory),
      ...(memory === undefined ? {} : { env: { memory } }),
    };
    let instance: WebAssembly.Instance;
    try {
      instance = await WebAssembly.instantiate(module, imports);
    } catch (error) {
      throw new PteryxError("wasm", `the WebAssembly module cannot be instantiated: ${String(error)}`, { cause: error });
    }
    host.memory.attach(memory ?? (instance.exports["memory"] as WebAssembly.Memory));
    wasm.#exports = instance.exports as unknown as Record<string, Exported>;
    wasm.call("_initialize");
    return wasm;
  }

  get heapBytes(): number {
    return this.host.memory.size;
  }

  /** A constant of the module. */
  global(name: string): number {
    return Number((this.#exports as unknown as Record<string, WebAssembly.Global>)[name]!.value);
  }
  /** Calls an export with numbers. Throws where the module failed in a way that it cannot recover from. */
  call(name: string, ...args: number[]): number {
    if (this.#trap !== undefined) throw this.#trap;
    try {
      return this.busy(() => this.#exports[name]!(...args));
    } catch (error) {
      const outOfMemory = isOutOfMemory(error);
      const message = outOfMemory ? `no memory is left for the module of ${this.heapBytes} bytes` : `the module stopped in '${name}': ${String(error)}`;
      this.#trap = new PteryxError(outOfMemory ? "out-of-memory" : "internal", message, { cause: error });
      throw this.#trap;
    }
  }
  /** Counts the time of what does not wait for anything. */
  busy<T>(work: () => T): T {
    if (this.#isBusy) return work();
    const began = performance.now();
    this.#isBusy = true;
    try {
      return work();
    } finally {
      this.#isBusy = false;
      this.busyMs += performance.now() - began;
    }
  }
  /** The same for exports that can fail. */
  check(name: string, ...args: number[]): number {
    const result = this.call(name, ...args);
    if (result === Called.failed) throw this.#failure(); // handles may be below 0 too: they have 32 bits
    return result;
  }
  /** With a text behind the other arguments. */
  checkText(name: string, args: readonly number[], text: string): number {
    return this.withBytes(this.host.memory.encode(text), (address, size) => this.check(name, ...args, address, size));
  }
  /** With a value behind the other arguments, as JSON. */
  checkJson(name: string, args: readonly number[], value: unknown): number {
    return this.checkText(name, args, JSON.stringify(value, wellFormed));
  }
  withBytes<T>(bytes: Uint8Array, use: (address: number, size: number) => T): T {
    const address = this.allocate(bytes.length);
    try {
      this.host.memory.view(address, bytes.length).set(bytes);
      return use(address, bytes.length);
    } finally {
      this.release(address);
    }
  }
  allocate(size: number): number {
    const address = this.call("allocate", Math.max(size, 1));
    if (address === 0) throw new PteryxError("out-of-memory", `no ${size} bytes are left in the module's memory`);
    return address >>> 0;
  }
  release(address: number): void {
    this.call("release", address);
  }
  /** What the last call gave, as text. */
  text(): string {
    return this.host.memory.text(this.call("result_data"), this.call("result_size"));
  }
  json(): unknown {
    return JSON.parse(this.text());
  }
  /** Calls an export until it is done. Throws what `stopped` says. */
  async finish(name: string, handle: number, stopped: () => PteryxError | undefined): Promise<void> {
    if (!(await this.advance(name, handle, () => stopped() !== undefined))) throw stopped()!;
  }
  /**
   * Calls an export until it is done, or until `stopped`, which is asked each time, ends that: then `false`. Between calls, waits until something has
   * happened, unless it computes; for `patienceMs` at most.
   */
  async advance(name: string, handle: number, stopped: () => boolean, patienceMs?: number): Promise<boolean> {
    for (;;) {
      if (stopped()) return false;
      const began = performance.now();
      if (this.check(name, handle) !== Called.later) return true;
      // What took its turn to the end has more to compute; should it wait after all, the next call says so at once.
      if (performance.now() - began >= kTurnMs) await this.host.breathe();
      else await this.busy(() => this.host.next(patienceMs));
    }
  }

  #failure(): PteryxError {
    const { code, message } = this.json() as { code: ErrorCode; message: string };
    // A source knows better than the module what became of it.
    const source = this.sources.failure;
    if (code === "io" && source !== undefined) {
      this.sources.failure = undefined;
      return new PteryxError(source.code, message, { cause: source });
    }
    if (code === "device" && this.gpus.isLost()) return new PteryxError("device-lost", message);
    return new PteryxError(code, message);
  }
}

// Which WebAssembly module is loaded, and what comes with it. SPDX-License-Identifier: BSD-3-Clause
import { isNode } from "../platform.js";
import { nodeProcessors } from "./node_parts.js";
import { maySleep, startThreads } from "./threads.js";
import { compileModule, usePart, Wasm } from "./wasm.js";

/** Where the package's parts are. Only what is needed is loaded. */
export interface ModuleAddresses {
  /** For language models that run on a GPU as a whole; with `kernels`. */
  readonly gpu: string;
  /** The GPU's kernels of language models, compressed. */
  readonly kernels: string;
  /** The others. */
  readonly networkKernels: string;
  /** For the CPU, on one thread; and, with both kinds of kernels, for other programs on a GPU, or partly on one. */
  readonly cpu: string;
  /** The same on several, which share its memory. */
  readonly threads: string;
  /** Makes programs of GGUF files. */
  readonly converter: string;
}

/** A module and what it runs on. */
export interface OpenModule {
  readonly wasm: Wasm;
  readonly threads: number;
  /** Otherwise a program is `unsupported` that needs more than language models do on a GPU. */
  readonly hasAll: boolean;
  /** Sentences on what is used in place of something better. */
  readonly notes: readonly string[];
  close(): void;
}

function readKernels(address: string, signal: AbortSignal): Promise<Uint8Array> {
  return usePart(new URL(address), "the GPU's kernels", signal, async (response) => {
    return new Uint8Array(await new Response(response.body!.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer());
  });
}

/** `all`: with all operators, and kernels for the CPU. */
export async function openGpuModule(addresses: ModuleAddresses, all: boolean, signal: AbortSignal): Promise<OpenModule> {
  const parts = all ? [addresses.kernels, addresses.networkKernels] : [addresses.kernels];
  const [module, ...kernels] = await Promise.all([compileModule(new URL(all ? addresses.cpu : addresses.gpu), signal), ...parts.map((part) => readKernels(part, signal))]);
  const wasm = await Wasm.instantiate(module);
  for (const part of kernels) {
    const address = wasm.allocate(part.length);
    wasm.host.memory.view(address, part.length).set(part);
    wasm.call("kernels_add", address, part.length);
  }
  return { wasm, threads: 1, hasAll: all, notes: [], close: () => undefined };
}

/** Threads that pay. What a platform tells is processors, of which two make a core on most machines that have many. */
async function usableCores(): Promise<number> {
  const processors = isNode ? await nodeProcessors() : ((globalThis.navigator as Navigator | undefined)?.hardwareConcurrency ?? 1);
  return Math.min(processors > 4 ? Math.ceil(processors / 2) : processors, 16);
}

/** Pages share memory with threads only where they are cross-origin isolated. */
function canShareMemory(): boolean {
  return typeof SharedArrayBuffer === "function" && (isNode || (globalThis as { crossOriginIsolated?: boolean }).crossOriginIsolated === true);
}

/** Why the CPU's kernels have one thread, where more would be used; none where that is as it was asked for. */
function lackOfThreads(wanted: number | undefined, count: number): string[] {
  if (count > 1) return ["One thread is used: there is no room for memory that threads could share."];
  const missed = wanted !== undefined && wanted > 1;
  return missed ? [`One thread is used in place of ${wanted}: the page is not cross-origin isolated (it needs the headers COOP and COEP).`] : [];
}

/** Of the sizes that the module was linked with; none where there is no room for that. */
function sharedMemory(): WebAssembly.Memory | undefined {
  try {
    return new WebAssembly.Memory({ initial: 256, maximum: 65536, shared: true });
  } catch {
    return undefined;
  }
}

export async function openCpuModule(addresses: ModuleAddresses, wanted: number | undefined, signal: AbortSignal): Promise<OpenModule> {
  const count = canShareMemory() ? wanted || (await usableCores()) : 1;
  const memory = count > 1 ? sharedMemory() : undefined;
  if (memory === undefined) {
    const wasm = await Wasm.instantiate(await compileModule(new URL(addresses.cpu), signal));
    return { wasm, threads: 1, hasAll: true, notes: lackOfThreads(wanted, count), close: () => undefined };
  }

  const module = await compileModule(new URL(addresses.threads), signal);
  const wasm = await Wasm.instantiate(module, { memory });
  wasm.call("threads_set", count, maySleep() ? 1 : 0);
  const threads = await startThreads(module, wasm, count);
  return { wasm, threads: count, hasAll: true, notes: [], close: () => threads.end() };
}

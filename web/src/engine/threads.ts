// The threads of the CPU's kernels: workers that run the same module over the same memory. SPDX-License-Identifier: BSD-3-Clause
import { missingPart } from "../errors.js";
import { startForeignWorker } from "../foreign_worker.js";
import { isNode } from "../platform.js";
import { startNodeThread } from "./node_parts.js";
import type { Wasm } from "./wasm.js";

/** What a thread is started with. */
export interface ThreadStart {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  /** From 1; the caller is 0. */
  readonly thread: number;
  /** Addresses of its own memory: the end of its stack, and of its variables. */
  readonly stackEnd: number;
  readonly variables: number;
}

export interface Threads {
  end(): void;
}

const kStackBytes = 256 * 1024;

/** Whether this thread may sleep in the module: that of a page may not. */
export function maySleep(): boolean {
  return isNode || typeof document === "undefined";
}

/** Resolves when it has begun to wait for work. */
async function startBrowserThread(start: ThreadStart): Promise<() => void> {
  const name = `pteryx ${start.thread}`;
  // In one expression, because bundlers look for it.
  const worker = startForeignWorker("thread.js", name) ?? new Worker(new URL("./thread.js", import.meta.url), { type: "module", name });
  await new Promise<void>((resolve, reject) => {
    worker.onmessage = () => resolve();
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message || "it is missing, or the page's security policy (worker-src) forbids it"));
    };
    worker.postMessage(start);
  });
  return () => worker.terminate();
}

/** Starts `count` threads less the caller's own. Rejects with the code `wasm` where one cannot be started. */
export async function startThreads(module: WebAssembly.Module, wasm: Wasm, count: number): Promise<Threads> {
  const { memory } = wasm.host.memory;
  const variableBytes = wasm.global("__tls_size");
  const starts = Array.from({ length: count - 1 }, (_, i): ThreadStart => {
    const stack = wasm.allocate(kStackBytes + 16);
    const variables = wasm.allocate(variableBytes + 64);
    return { module, memory, thread: i + 1, stackEnd: (stack + kStackBytes + 15) & ~15, variables: (variables + 63) & ~63 };
  });
  const started = await Promise.allSettled(starts.map(isNode ? startNodeThread : startBrowserThread));
  const ends = started.flatMap((s) => (s.status === "fulfilled" ? [s.value] : []));
  const end = (): void => ends.forEach((stop) => stop());
  const failed = started.find((s) => s.status === "rejected");
  if (failed !== undefined) {
    end();
    throw missingPart("the package's thread.js", `cannot be started: ${String(failed.reason)}`, failed.reason);
  }
  return { end };
}

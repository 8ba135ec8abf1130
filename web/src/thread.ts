// A thread of the CPU's kernels, which runs what the module shares out until it is ended. SPDX-License-Identifier: BSD-3-Clause
import type { ThreadStart } from "./engine/threads.js";
import { isNode } from "./platform.js";

/** Kernels call nothing of the script; whoever does has lost its way. */
function makeImports(module: WebAssembly.Module, memory: WebAssembly.Memory): WebAssembly.Imports {
  const imports: Record<string, Record<string, WebAssembly.ImportValue>> = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    const refuse = (): never => {
      throw new Error(`a thread called ${from}.${name}`);
    };
    (imports[from] ??= {})[name] = kind === "memory" ? memory : refuse;
  }
  return imports;
}

async function run(start: ThreadStart, ready: () => void): Promise<void> {
  const { exports } = await WebAssembly.instantiate(start.module, makeImports(start.module, start.memory));
  (exports["__stack_pointer"] as WebAssembly.Global).value = start.stackEnd;
  (exports["__wasm_init_tls"] as (address: number) => void)(start.variables);
  ready();
  (exports["thread_run"] as (thread: number) => void)(start.thread);
}

async function runInNode(): Promise<void> {
  const { parentPort, workerData } = (await import(/* @vite-ignore */ "node:worker_threads" as string)) as typeof import("node:worker_threads");
  await run(workerData as ThreadStart, () => parentPort!.postMessage(null));
}

// No await at the top: bundlers make scripts of workers that have none. What is rejected becomes the worker's error.
if (isNode) void runInNode();
else addEventListener("message", (event: MessageEvent<ThreadStart>) => void run(event.data, () => (postMessage as (message: unknown) => void)(null)).catch(reportError));

// WebGPU, threads and processors in Node. SPDX-License-Identifier: BSD-3-Clause
import type { ThreadStart } from "./threads.js";
import { nodeModule } from "../source/node_file.js";

// Kept for as long as the process lives: the package ends with it what still runs.
let kept: GPU | undefined;

/** WebGPU of the package `webgpu`, or why there is none. */
export async function nodeGpu(): Promise<GPU | string> {
  if (kept !== undefined) return kept;
  try {
    const { create, globals } = (await import(/* @vite-ignore */ "webgpu" as string)) as { create(options: string[]): GPU; globals: object };
    for (const [name, value] of Object.entries(globals)) (globalThis as Record<string, unknown>)[name] ??= value;
    return (kept = create([]));
  } catch (error) {
    const missing = (error as { code?: string }).code === "ERR_MODULE_NOT_FOUND";
    return missing ? "the package 'webgpu' is not installed" : `the package 'webgpu' cannot be used (${error instanceof Error ? error.message : String(error)})`;
  }
}

/** Resolves when it has begun to wait for work. */
export async function startNodeThread(start: ThreadStart): Promise<() => void> {
  const { Worker } = await nodeModule<typeof import("node:worker_threads")>("worker_threads");
  const worker = new Worker(new URL("./thread.js", import.meta.url), { workerData: start, execArgv: [], name: `pteryx ${start.thread}` });
  await new Promise<void>((resolve, reject) => worker.once("message", () => resolve()).once("error", reject));
  worker.unref(); // it waits for work, which is no reason for the process to stay
  return () => void worker.terminate();
}

export async function nodeProcessors(): Promise<number> {
  return (await nodeModule<typeof import("node:os")>("os")).availableParallelism();
}

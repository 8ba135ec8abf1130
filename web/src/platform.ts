// What differs between browsers and Node. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "./errors.js";

export const isNode = typeof process === "object" && typeof process.versions?.node === "string" && typeof (globalThis as { window?: unknown }).window === "undefined";

// Kept for as long as the process lives: the package ends with it what still runs.
let nodeGpu: GPU | undefined;
let whyNoGpu = "this browser has no WebGPU (navigator.gpu is not there)";

/** Why `platformGpu` gave none. */
export function gpuProblem(): string {
  return whyNoGpu;
}

/** WebGPU: the browser's own; in Node, that of the package `webgpu` where it is installed. */
export async function platformGpu(): Promise<GPU | undefined> {
  const own = (globalThis.navigator as Navigator | undefined)?.gpu;
  if (own !== undefined || !isNode) return own;
  if (nodeGpu !== undefined) return nodeGpu;
  try {
    const { create, globals } = (await import(/* @vite-ignore */ "webgpu" as string)) as { create(options: string[]): GPU; globals: object };
    for (const [name, value] of Object.entries(globals)) (globalThis as Record<string, unknown>)[name] ??= value;
    return (nodeGpu = create([]));
  } catch (error) {
    const missing = (error as { code?: string }).code === "ERR_MODULE_NOT_FOUND";
    whyNoGpu = missing ? "the package 'webgpu' is not installed" : `the package 'webgpu' cannot be used (${error instanceof Error ? error.message : String(error)})`;
    return undefined;
  }
}

/** What relative addresses are relative to. */
export function baseAddress(): string {
  if (isNode) return `file://${process.cwd()}/`;
  return typeof document === "undefined" ? location.href : document.baseURI;
}

/** Errors of other kinds, as the package's own. */
export function asPteryxError(error: unknown): PteryxError {
  if (error instanceof PteryxError) return error;
  if (error instanceof DOMException && error.name === "AbortError") return new PteryxError("cancelled", "it was cancelled", { cause: error });
  const text = error instanceof Error ? error.message : String(error);
  return new PteryxError("internal", text, { cause: error });
}

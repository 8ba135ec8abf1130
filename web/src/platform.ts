// What differs between browsers and Node. SPDX-License-Identifier: BSD-3-Clause
import { nodeGpu } from "./engine/node_parts.js";
import { isOutOfMemory, PteryxError } from "./errors.js";
import { isNode } from "./node_check.js";

export { isNode };

let whyNoGpu = "this browser has no WebGPU (navigator.gpu is not there)";

/** Why `platformGpu` gave none. */
export function gpuProblem(): string {
  return whyNoGpu;
}

/** WebGPU: the browser's own; in Node, that of the package `webgpu` where it is installed. */
export async function platformGpu(): Promise<GPU | undefined> {
  const own = (globalThis.navigator as Navigator | undefined)?.gpu;
  if (own !== undefined || !isNode) return own;
  const found = await nodeGpu();
  if (typeof found !== "string") return found;
  whyNoGpu = found;
  return undefined;
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
  return new PteryxError(isOutOfMemory(error) ? "out-of-memory" : "internal", text, { cause: error });
}

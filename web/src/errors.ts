// What goes wrong, by kind. SPDX-License-Identifier: BSD-3-Clause

/** What kind of failure it is. The message says what, where, what was expected and what was found. */
export type ErrorCode =
  /** The requested device is not available, or there is neither WebGPU nor WebAssembly SIMD. */
  | "no-device"
  /** The GPU's driver reset it, or the browser took it away; see `Model.recover`. */
  | "device-lost"
  /** WebGPU reported another error. */
  | "device"
  /** No memory is left on the GPU, or in the page. */
  | "out-of-memory"
  /** A file of the package could not be fetched, or the page's security policy blocks it. */
  | "wasm"
  /** The server answered with an error; the message has its status. */
  | "http"
  /** The network could not be reached, or broke off. */
  | "network"
  /** The browser has no room left for the cache. */
  | "quota"
  /** A file could not be read or written. */
  | "io"
  /** The file is damaged, cut short, or of another type. */
  | "invalid-program"
  /** The program needs operators or limits that this device lacks; the message lists all of them. */
  | "unsupported"
  /** The call is wrong. */
  | "invalid-argument"
  /** Cancelled by the signal. */
  | "cancelled"
  /** A bug of Pteryx. */
  | "internal";

/** Every error of the package. */
export class PteryxError extends Error {
  override readonly name = "PteryxError";
  constructor(
    /** What kind of failure it is. */
    readonly code: ErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Whether an exception of JavaScript's own, or what the module stopped with, says that an allocation failed. */
export function isOutOfMemory(error: unknown): boolean {
  return /bad_alloc|allocation (failed|size)|out of memory/i.test(String(error));
}

/** A part of the package that could not be loaded: `network` if the browser says that it is offline, otherwise `wasm`. */
export function missingPart(what: string, why: string, cause?: unknown): PteryxError {
  const offline = (globalThis.navigator as Navigator | undefined)?.onLine === false;
  if (offline) return new PteryxError("network", `${what} cannot be fetched: this device is offline`, { cause });
  return new PteryxError("wasm", `${what} ${why}`, { cause });
}

// What to do about each kind of failure, in one table. SPDX-License-Identifier: BSD-3-Clause

import type { ErrorCode } from "../../src/errors.ts";

/**
 * What the page offers as a button. `retry` does the same again, `unload` frees the model in use first; `recover` starts the device anew and keeps
 * the conversation.
 */
export type Remedy = "retry" | "recover" | "manage-cache" | "inspect" | "use-cpu" | "new-chat" | "without-cache" | "download-again" | "unload" | "reload";

export interface ErrorText {
  readonly title: string;
  /** One or two sentences: what to do next. */
  readonly next: string;
  readonly remedies: readonly Remedy[];
}

export const kErrorTexts: Readonly<Record<ErrorCode, ErrorText>> = {
  "no-device": {
    title: "No device can run this model",
    next: "The message below says what is missing. Update the browser, open this page in a current Chrome, Edge, Firefox or Safari, or run on the CPU.",
    remedies: ["use-cpu", "retry"],
  },
  "device-lost": {
    title: "The GPU was reset",
    next: "The driver or the browser took the GPU away. Restart it to reload the model from the cache and continue the conversation.",
    remedies: ["recover"],
  },
  device: {
    title: "The GPU reported an error",
    next: "Try again. If it comes back, update the browser and the graphics driver, or run on the CPU.",
    remedies: ["retry", "use-cpu"],
  },
  "out-of-memory": {
    title: "Not enough memory",
    next: "The model needs more memory than is left, or a larger buffer than the GPU allows. Unload other models or close other tabs, run it on the CPU, or use a smaller or more heavily quantised model.",
    remedies: ["unload", "use-cpu", "inspect", "retry"],
  },
  wasm: {
    title: "The runtime could not be started",
    next: "A .wasm or .js file of this page is missing, or a security policy blocks WebAssembly. Reload; if you run the server, check that the folder pteryx/ is complete and that the policy allows 'wasm-unsafe-eval'.",
    remedies: ["reload"],
  },
  http: {
    title: "The server did not send the file",
    next: "Check the address. A page can only read files from other servers that allow it (CORS); you can also download the file and drop it here.",
    remedies: ["retry"],
  },
  network: {
    title: "The connection failed",
    next: "Check the connection and try again: a download resumes where it stopped. If the server blocks other sites (CORS), download the file and drop it here.",
    remedies: ["retry"],
  },
  quota: {
    title: "The browser's storage is full",
    next: "Delete models from the cache, free space on the disk, or load this one without caching it. Private windows often have little room.",
    remedies: ["without-cache", "manage-cache", "retry"],
  },
  io: {
    title: "The file could not be read",
    next: "It may have been moved, changed or deleted since it was chosen. Choose it again.",
    remedies: ["retry"],
  },
  "invalid-program": {
    title: "The file cannot be used",
    next: "It is damaged, cut short, or not a .pte or .gguf file. Download or export it again.",
    remedies: ["download-again", "retry"],
  },
  unsupported: {
    title: "This model does not run here",
    next: "Inspect shows which operators or limits are missing. Another GPU, the CPU, or another export of the model may work.",
    remedies: ["inspect", "use-cpu"],
  },
  "invalid-argument": {
    title: "Invalid input",
    next: "Fix what the message names and try again.",
    remedies: ["new-chat"],
  },
  cancelled: {
    title: "Cancelled",
    next: "Nothing was lost: a download resumes where it stopped.",
    remedies: ["retry"],
  },
  internal: {
    title: "Something went wrong in Pteryx",
    next: "This is a bug. Reload the page; please report the message below with the name of the model.",
    remedies: ["reload"],
  },
};

/** A failure as the page shows it, whatever was thrown. */
export interface Failure extends ErrorText {
  readonly code: ErrorCode;
  readonly message: string;
}

export function failureOf(error: unknown): Failure {
  const code = codeOf(error);
  const message = error instanceof Error ? error.message : String(error);
  return { code, message, ...kErrorTexts[code] };
}

/** An error keeps its code when it comes from a worker or from another copy of the package, so the class is not asked. */
function codeOf(error: unknown): ErrorCode {
  if (typeof error !== "object" || error === null) return "internal";
  const { code, name } = error as { code?: unknown; name?: unknown };
  if (typeof code === "string" && Object.hasOwn(kErrorTexts, code)) return code as ErrorCode;
  return name === "AbortError" ? "cancelled" : "internal";
}

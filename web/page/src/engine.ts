// The package, loaded when it is first needed. SPDX-License-Identifier: BSD-3-Clause
// The page uses it as any other page would: from the folder pteryx/ beside it, with the files that `npm pack` packs.

import { missingPart } from "../../src/errors.ts";

export type Engine = typeof import("../../src/index.ts");

let loading: Promise<Engine> | null = null;
let attempts = 0;

/** Rejects with the code `wasm` where the folder is incomplete, `network` without a connection; the next call tries again. */
export function loadEngine(): Promise<Engine> {
  return (loading ??= importEngine().catch((error: unknown) => {
    loading = null;
    throw missingPart("pteryx/index.js", `could not be loaded: ${error instanceof Error ? error.message : String(error)}`, error);
  }));
}

function importEngine(): Promise<Engine> {
  const url = new URL("pteryx/index.js", document.baseURI);
  // A module that failed stays failed under its address.
  if (attempts++ > 0) url.searchParams.set("attempt", String(attempts));
  return import(url.href) as Promise<Engine>;
}

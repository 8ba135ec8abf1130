// What the page opens. SPDX-License-Identifier: BSD-3-Clause

import type { CacheEntry, Input } from "../../src/index.ts";
import { nameOfUrl } from "./format.ts";

/** An address, as it was written; a file; or a conversion of one that the browser has kept. */
export type PageInput = string | File | CacheEntry;

export function nameOf(input: PageInput): string {
  if (typeof input === "string") return nameOfUrl(input);
  return input instanceof File ? input.name : input.url;
}

/** As the package takes it. */
export function packageInput(input: PageInput): Input {
  return typeof input === "string" ? new URL(input, document.baseURI) : input;
}

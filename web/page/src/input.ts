// What the page opens. SPDX-License-Identifier: BSD-3-Clause

import { PteryxError } from "../../src/errors.ts";
import type { CacheEntry, Input } from "../../src/index.ts";
import { nameOfUrl } from "./format.ts";

/** An address, as it was written; a file; or a conversion of one that the browser has kept. */
export type PageInput = string | File | CacheEntry;

export function nameOf(input: PageInput): string {
  if (typeof input === "string") return nameOfUrl(input);
  return input instanceof File ? input.name : input.url;
}

/** An address in full; null where it is none. */
export function addressOf(text: string): URL | null {
  try {
    return new URL(text, document.baseURI);
  } catch {
    return null;
  }
}

/** As the package takes it. Throws `invalid-argument` where an address is none. */
export function packageInput(input: PageInput): Input {
  if (typeof input !== "string") return input;
  const address = addressOf(input);
  if (!address) throw new PteryxError("invalid-argument", `'${input}' is not an address`);
  return address;
}

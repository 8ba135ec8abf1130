// What can be done about the browser's cache where a load fails. SPDX-License-Identifier: BSD-3-Clause

import { loadEngine } from "../engine.ts";
import { addressOf, type PageInput } from "../input.ts";
import type { Remedies } from "./error_card.ts";

/** `load`: again, with or without the cache; `show` brings the list of what is in it in sight. */
export function cacheRemedies(input: PageInput, load: (cache: boolean) => void, show: () => void): Remedies {
  const address = typeof input === "string" ? addressOf(input) : null;
  const downloadAgain = async (url: string): Promise<void> => {
    // Where that fails, the load says why.
    await loadEngine().then(({ cache }) => cache.delete(url)).catch(() => undefined);
    load(true);
  };
  return { "without-cache": () => load(false), "manage-cache": show, ...(address && { "download-again": () => void downloadAgain(address.href) }) };
}

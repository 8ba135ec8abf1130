// Where bytes come from. SPDX-License-Identifier: BSD-3-Clause
export { openInput, type OpenOptions } from "./open_input.js";
export type { OpenSource } from "./source.js";
export { askPersistence, cache, createEntry, openEntry, type Cache, type CacheEntry, type CacheKind, type EntryWriter } from "./cache.js";

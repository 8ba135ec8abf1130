// SPDX-License-Identifier: BSD-3-Clause
export const isNode = typeof process === "object" && typeof process.versions?.node === "string" && typeof (globalThis as { window?: unknown }).window === "undefined";

// Content of test files. SPDX-License-Identifier: BSD-3-Clause
import { createHash } from "node:crypto";

export const MIB = 1024 * 1024;

/** Bytes that look random and are the same for the same seed; no part repeats. */
export function randomBytes(size, seed = 1) {
  const words = new Uint32Array(Math.ceil(size / 4));
  let state = seed * 2654435761 >>> 0 || 1;
  for (let i = 0; i < words.length; i++) {
    state ^= state << 13, state ^= state >>> 17, state ^= state << 5;
    words[i] = state;
  }
  return new Uint8Array(words.buffer, 0, size);
}

export function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

// Whether WebAssembly has SIMD here. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";

// A function that gives i8x16.popcnt(i8x16.splat(0)).
const kProbe = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];

export function hasSimd(): boolean {
  return WebAssembly.validate(Uint8Array.from(kProbe));
}

/** Throws `no-device` where the CPU's kernels cannot run either. `why`: sentences on why no GPU is used. */
export function requireSimd(why: readonly string[]): void {
  if (hasSimd()) return;
  const reasons = ["WebAssembly has no SIMD here, which the CPU's kernels need.", ...why];
  throw new PteryxError("no-device", `nothing can run here. ${reasons.join(" ")} Update the browser, or use one with WebGPU or WebAssembly SIMD`);
}

// What the C library of the module asks for: a clock. SPDX-License-Identifier: BSD-3-Clause
import type { ModuleMemory } from "./module_memory.js";

const OK = 0;
const NOT_SUPPORTED = 58;
const REALTIME = 0;
const MONOTONIC = 1;

/** The functions of wasi_snapshot_preview1 that the module imports. */
export function makeWasiImports(memory: ModuleMemory) {
  return {
    clock_time_get(clock: number, _precision: bigint, out: number): number {
      if (clock !== REALTIME && clock !== MONOTONIC) return NOT_SUPPORTED;
      const milliseconds = clock === REALTIME ? Date.now() : performance.now();
      new DataView(memory.memory.buffer).setBigUint64(out >>> 0, BigInt(Math.round(milliseconds * 1e6)), true);
      return OK;
    },
  };
}

// What the module asks of the page for numbers: the imports of pteryx/base/web/numbers.cpp and web/module/math.cpp.
// SPDX-License-Identifier: BSD-3-Clause
import type { ModuleMemory } from "./module_memory.js";

const FLOAT = 1;
const FIXED = 2;
const MOST_FLOAT_DIGITS = 9;

/** The fewest digits that no other float is nearer to. */
function shortestFloat(value: number): string {
  for (let digits = 0; digits < MOST_FLOAT_DIGITS - 1; ++digits) {
    const text = value.toExponential(digits);
    if (Math.fround(Number(text)) === value) return text;
  }
  return value.toExponential(MOST_FLOAT_DIGITS - 1);
}

/** A finite number from 0 on, in a form of NumberForm. */
export function printNumber(value: number, form: number, digits: number): string {
  if (form === FIXED) return value.toFixed(digits);
  return form === FLOAT ? shortestFloat(value) : value.toExponential();
}

export function makeNumberImports(memory: ModuleMemory) {
  const math = Math as unknown as WebAssembly.ModuleImports;
  return {
    ...Object.fromEntries(Object.getOwnPropertyNames(Math).map((name) => [`math_${name}`, math[name]!])),
    number_read: (text: number, size: number): number => Number(memory.text(text, size)),
    number_print(value: number, form: number, digits: number, out: number): number {
      const bytes = memory.encode(printNumber(value, form, digits));
      memory.view(out, bytes.length).set(bytes);
      return bytes.length;
    },
  };
}

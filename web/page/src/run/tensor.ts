// Tensors in the page: elements of every type, as numbers. SPDX-License-Identifier: BSD-3-Clause

import type { DType, OutputValue, Tensor, TypedArray } from "../../../src/types.ts";
import { bfloatToFloat, floatToBfloat, floatToHalf, halfToFloat } from "./half.ts";

export const kElementBytes: Readonly<Record<DType, number>> = {
  f64: 8, i64: 8, u64: 8, f32: 4, i32: 4, u32: 4, f16: 2, bf16: 2, i16: 2, u16: 2, i8: 1, u8: 1, bool: 1,
};

export function elementCount(dims: readonly number[]): number {
  return dims.reduce((n, d) => n * d, 1);
}

export function newArray(dtype: DType, count: number): TypedArray {
  switch (dtype) {
    case "f32": return new Float32Array(count);
    case "f64": return new Float64Array(count);
    case "f16":
    case "bf16":
    case "u16": return new Uint16Array(count);
    case "i64": return new BigInt64Array(count);
    case "u64": return new BigUint64Array(count);
    case "u32": return new Uint32Array(count);
    case "i32": return new Int32Array(count);
    case "i16": return new Int16Array(count);
    case "i8": return new Int8Array(count);
    case "u8":
    case "bool": return new Uint8Array(count);
  }
}

export function isTensor(value: OutputValue): value is Tensor {
  return typeof value === "object" && value !== null;
}

export function isFloat(dtype: DType): boolean {
  return dtype.includes("f");
}

export function elementAt(tensor: Tensor, index: number): number {
  const value = tensor.data[index]!;
  if (typeof value === "bigint") return Number(value);
  return tensor.dtype === "f16" ? halfToFloat(value) : tensor.dtype === "bf16" ? bfloatToFloat(value) : value;
}

/** Values as elements of a type: integers are rounded and kept within the type's range. */
export function tensorOf(dtype: DType, dims: readonly number[], value: (index: number) => number): Tensor {
  const count = elementCount(dims);
  const data = newArray(dtype, count);
  const put = writer(dtype, data);
  for (let i = 0; i < count; i++) put(i, value(i));
  return { dtype, dims, data };
}

const kRange: Readonly<Partial<Record<DType, readonly [number, number]>>> = {
  i32: [-(2 ** 31), 2 ** 31 - 1], u32: [0, 2 ** 32 - 1], i16: [-32768, 32767], u16: [0, 65535], i8: [-128, 127], u8: [0, 255],
};

function writer(dtype: DType, data: TypedArray): (index: number, value: number) => void {
  if (data instanceof BigInt64Array) return (i, v) => (data[i] = BigInt(Math.round(v)));
  if (data instanceof BigUint64Array) return (i, v) => (data[i] = BigInt(Math.max(0, Math.round(v))));
  if (dtype === "bf16") return (i, v) => (data[i] = floatToBfloat(v));
  if (dtype === "f16") return (i, v) => (data[i] = floatToHalf(v));
  if (dtype === "bool") return (i, v) => (data[i] = v === 0 ? 0 : 1);
  const range = kRange[dtype];
  if (!range) return (i, v) => (data[i] = v);
  return (i, v) => (data[i] = Math.min(range[1], Math.max(range[0], Math.round(v))));
}

/** The same elements as another type. */
export function convertTensor(tensor: Tensor, dtype: DType): Tensor {
  if (tensor.dtype === dtype) return tensor;
  if (dtype === "bool" && tensor.dtype === "u8") return { ...tensor, dtype };
  return tensorOf(dtype, tensor.dims, (i) => elementAt(tensor, i));
}

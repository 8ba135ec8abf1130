// NumPy's .npy files. SPDX-License-Identifier: BSD-3-Clause

import type { DType, Tensor } from "../../../src/types.ts";
import { convertTensor, elementCount, isFloat, kElementBytes, newArray, tensorOf } from "./tensor.ts";

const kMagic = "\x93NUMPY";

const kTypes: Readonly<Record<string, DType>> = {
  f4: "f32", f8: "f64", f2: "f16", i8: "i64", i4: "i32", i2: "i16", i1: "i8", u8: "u64", u4: "u32", u2: "u16", u1: "u8", b1: "bool",
};

/** Reads a file of NumPy 1.0 to 3.0; of big-endian data and Fortran order as well. Throws a sentence that names what is wrong. */
export function readNpy(bytes: Uint8Array): Tensor {
  if (bytes.length < 10 || !ascii(bytes, 0, 6).startsWith(kMagic)) throw new Error("this is no .npy file: it does not begin with NumPy's signature");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const wide = bytes[6]! >= 2;
  if (wide && bytes.length < 12) throw new Error("the .npy file is cut short in its header");
  const start = wide ? 12 : 10;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  if (start + length > bytes.length) throw new Error("the .npy file is cut short in its header");
  const header = ascii(bytes, start, start + length);
  const { descr, fortran, shape } = readHeader(header);
  const dtype = kTypes[descr.slice(1)];
  if (!dtype) throw new Error(`the .npy file has elements of type '${descr}', which no tensor of a program has`);
  const count = elementCount(shape);
  const size = count * kElementBytes[dtype];
  const found = bytes.length - start - length;
  if (!Number.isSafeInteger(size) || found < size) throw new Error(`the .npy file is cut short: [${shape.join(", ")}] needs ${size} bytes, ${found} are there`);
  const data = newArray(dtype, count);
  const raw = new Uint8Array(data.buffer);
  raw.set(bytes.subarray(start + length, start + length + size));
  if (descr[0] === ">") swapBytes(raw, kElementBytes[dtype]);
  const tensor: Tensor = { dtype, dims: shape, data };
  return fortran && shape.length > 1 ? toRowMajor(tensor) : tensor;
}

function readHeader(header: string): { descr: string; fortran: boolean; shape: number[] } {
  const descr = /'descr'\s*:\s*'([<>|=][a-z]\d+)'/.exec(header)?.[1];
  const fortran = /'fortran_order'\s*:\s*(True|False)/.exec(header)?.[1];
  const shape = /'shape'\s*:\s*\(([\d\s,L]*)\)/.exec(header)?.[1];
  if (descr === undefined) throw new Error("the .npy file holds no plain array of numbers");
  if (fortran === undefined || shape === undefined) throw new Error("the header of the .npy file is damaged");
  const dims = shape.split(",").map((d) => d.trim()).filter((d) => d !== "").map((d) => parseInt(d, 10));
  return { descr, fortran: fortran === "True", shape: dims };
}

function toRowMajor(tensor: Tensor): Tensor {
  const { dims } = tensor;
  const data = newArray(tensor.dtype, tensor.data.length);
  const index = new Array<number>(dims.length).fill(0);
  for (let from = 0; from < data.length; from++) {
    const to = dims.reduce((at, dim, axis) => at * dim + index[axis]!, 0);
    data[to] = tensor.data[from]!;
    for (let axis = 0; axis < dims.length && ++index[axis]! === dims[axis]; axis++) index[axis] = 0;
  }
  return { ...tensor, data };
}

function swapBytes(raw: Uint8Array, size: number): void {
  for (let i = 0; size > 1 && i < raw.length; i += size) raw.subarray(i, i + size).reverse();
}

/** The tensor as a file that `numpy.load` reads; bf16, which NumPy has not, as f32. */
export function writeNpy(given: Tensor): Uint8Array<ArrayBuffer> {
  const tensor = given.dtype === "bf16" ? convertTensor(given, "f32") : given;
  const [code] = Object.entries(kTypes).find(([, dtype]) => dtype === tensor.dtype)!;
  const order = kElementBytes[tensor.dtype] === 1 ? "|" : "<";
  const shape = tensor.dims.length === 1 ? `${tensor.dims[0]},` : tensor.dims.join(", ");
  const fields = `{'descr': '${order}${code}', 'fortran_order': False, 'shape': (${shape}), }`;
  // The data begins at a multiple of 64 bytes, the header ends with a newline.
  const header = fields.padEnd(Math.ceil((10 + fields.length + 1) / 64) * 64 - 11, " ") + "\n";
  const body = new Uint8Array(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
  const file = new Uint8Array(10 + header.length + body.length);
  for (let i = 0; i < 6; i++) file[i] = kMagic.charCodeAt(i);
  file[6] = 1;
  new DataView(file.buffer).setUint16(8, header.length, true);
  for (let i = 0; i < header.length; i++) file[10 + i] = header.charCodeAt(i);
  file.set(body, 10 + header.length);
  return file;
}

/** Numbers as people type or paste them: separated by spaces, commas, semicolons, brackets or lines. */
export function parseNumbers(text: string, dtype: DType, dims: readonly number[]): Tensor {
  const words = text.split(/[\s,;[\](){}]+/).filter((word) => word !== "");
  const count = elementCount(dims);
  if (words.length !== count && words.length !== 1) throw new Error(`${count} numbers are needed for [${dims.join(", ")}], or one for all of them; ${words.length} are given`);
  const values = words.map((word) => {
    const value = /^true$/i.test(word) ? 1 : /^false$/i.test(word) ? 0 : Number(word.replace(/^(-?)inf(inity)?$/i, "$1Infinity"));
    if (Number.isNaN(value) && !/^nan$/i.test(word)) throw new Error(`'${word.slice(0, 40)}' is no number`);
    if (!isFloat(dtype) && !Number.isFinite(value)) throw new Error(`'${word.slice(0, 40)}' is no ${dtype}`);
    return value;
  });
  return tensorOf(dtype, dims, (i) => values.length === 1 ? values[0]! : values[i]!);
}

function ascii(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, Math.min(to, from + 65_536)));
}

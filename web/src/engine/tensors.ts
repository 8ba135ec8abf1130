// Values of a program between JavaScript and the module. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import type { DType, InputValue, MethodInfo, Outputs, OutputValue, Tensor, TypedArray, ValueInfo } from "../types.js";
import { shown } from "./options.js";
import type { Wasm } from "./wasm.js";

type ArrayType = { new (buffer: ArrayBuffer): TypedArray; readonly name: string; from(values: readonly unknown[], element: (value: unknown) => unknown): TypedArray };
const kArrays = {
  f32: Float32Array, f64: Float64Array, f16: Uint16Array, bf16: Uint16Array, i64: BigInt64Array, i32: Int32Array, i16: Int16Array, i8: Int8Array,
  u8: Uint8Array, bool: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array,
} as unknown as Readonly<Record<DType, ArrayType>>;

/** Other arrays that hold elements of a type. */
const kAlso: Readonly<Partial<Record<DType, string>>> = { u8: "Uint8ClampedArray", bool: "Uint8ClampedArray", f16: "Float16Array" };

/** As the module reads it. */
type Described = Record<string, unknown>;

function isTensor(value: object): value is Tensor {
  return "dtype" in value && "dims" in value && "data" in value;
}

type Wrong = (expected: string, got: unknown) => PteryxError;

/** Numbers as elements of a type, which have to be those numbers: none is wrapped, cut or made of something else. */
function arrayOf(values: readonly unknown[], dtype: DType, wrong: Wrong): TypedArray {
  const array = kArrays[dtype];
  if (array === Uint16Array && dtype !== "u16") throw wrong(`a Uint16Array with the bits of ${dtype}`, values);
  const wide = /[iu]64/.test(dtype);
  const data = array.from(values, (value) => {
    if (wide) return BigInt(typeof value === "bigint" || Number.isInteger(value) ? (value as number) : 0);
    return dtype === "bool" ? Number(Boolean(value)) : typeof value === "number" ? value : 0;
  });
  const bad = values.findIndex((value, i) => (dtype.startsWith("f") ? typeof value !== "number" : data[i] != value));
  if (bad >= 0) throw wrong(`elements of ${dtype}`, values[bad]);
  return data;
}

/** Sizes of an array that has none: those of the input, of which one may be smaller where it may be. */
function dimsFor(count: number, info: ValueInfo): readonly number[] {
  const dims = info.dims ?? [];
  const full = dims.reduce((product, d) => product * d, 1);
  if (count === full || !(info.dynamic ?? false)) return dims;
  for (let i = dims.length - 1; i >= 0; --i) {
    const rest = full / dims[i]!;
    if (dims[i]! > 1 && count % rest === 0 && count / rest < dims[i]!) return dims.map((d, at) => (at === i ? count / rest : d));
  }
  return dims;
}

function tensorFor(value: Tensor | TypedArray | readonly number[], info: ValueInfo, wrong: Wrong): Tensor {
  if (!Array.isArray(value) && !ArrayBuffer.isView(value)) return value as Tensor;
  const dtype = info.dtype ?? "f32";
  const data = Array.isArray(value) ? arrayOf(value, dtype, wrong) : (value as TypedArray);
  return { dtype, dims: dimsFor(data.length, info), data };
}

/** Inputs in the module's memory, for as long as a run takes. */
export class Inputs {
  readonly described: Described[] = [];
  readonly #memory: number[] = [];

  constructor(readonly wasm: Wasm) {}

  add(value: InputValue, info: ValueInfo, method: string): void {
    const wrong: Wrong = (expected, got) => new PteryxError("invalid-argument", `input '${info.name}' of '${method}': expected ${expected}, got ${shown(got)}`);
    const tensor = (from: unknown): void => this.#addTensor(tensorFor(from as Tensor, info, wrong), wrong);
    if (value === null) this.described.push({ kind: "none" });
    else if (typeof value === "boolean") this.described.push({ kind: "bool", value });
    else if (typeof value === "string") this.described.push({ kind: "string", value });
    else if (typeof value === "bigint") this.described.push({ kind: "int", value: String(value) });
    else if (typeof value === "number" && info.kind === "tensor") tensor([value]);
    else if (typeof value === "number" && Number.isFinite(value)) this.described.push(Number.isSafeInteger(value) ? { kind: "int", value: String(value) } : { kind: "float", value });
    else if (typeof value === "object" && (Array.isArray(value) || ArrayBuffer.isView(value) || isTensor(value))) tensor(value);
    else throw wrong(info.kind === "tensor" ? `a tensor of ${info.dtype}` : info.kind, value);
  }
  #addTensor(tensor: Tensor, wrong: Wrong): void {
    // By its name, which is the same in other frames and of subclasses.
    const name = String((tensor.data as TypedArray | undefined)?.[Symbol.toStringTag]);
    if (name !== kArrays[tensor.dtype]?.name && name !== kAlso[tensor.dtype]) throw wrong(`elements of ${tensor.dtype}`, tensor.data);
    const bytes = new Uint8Array(tensor.data.buffer, tensor.data.byteOffset, tensor.data.byteLength);
    const address = this.wasm.allocate(bytes.length);
    this.#memory.push(address);
    this.wasm.host.memory.view(address, bytes.length).set(bytes);
    this.described.push({ kind: "tensor", dtype: tensor.dtype, dims: tensor.dims, data: address, bytes: bytes.length });
  }
  release(): void {
    for (const address of this.#memory) this.wasm.release(address);
    this.#memory.length = 0;
  }
}

/** By position or by name, in the order of the method's inputs. */
export function orderInputs(method: MethodInfo, inputs: readonly InputValue[] | Readonly<Record<string, InputValue>>): InputValue[] {
  if (Array.isArray(inputs)) {
    if (inputs.length === method.inputs.length) return [...(inputs as readonly InputValue[])];
    throw new PteryxError("invalid-argument", `'${method.name}' takes ${method.inputs.length} inputs, got ${inputs.length}`);
  }
  const named = inputs as Readonly<Record<string, InputValue>>;
  const known = method.inputs.map((input) => input.name);
  const stranger = Object.keys(named).find((name) => !known.includes(name));
  if (stranger !== undefined) throw new PteryxError("invalid-argument", `'${method.name}' has no input '${stranger}': expected ${known.join(", ")}`);
  return method.inputs.map((input) => {
    const value = named[input.name];
    if (value !== undefined) return value;
    if (input.value !== undefined) return input.value;
    throw new PteryxError("invalid-argument", `'${method.name}' needs the input '${input.name}'`);
  });
}

interface DescribedOutput {
  kind: string;
  dtype: DType;
  dims: number[];
  data: number;
  bytes: number;
  value: number | string | boolean;
}

function outputOf(output: DescribedOutput, wasm: Wasm): OutputValue {
  switch (output.kind) {
    case "tensor": {
      const bytes = wasm.host.memory.view(output.data, output.bytes).slice();
      return { dtype: output.dtype, dims: output.dims, data: new kArrays[output.dtype](bytes.buffer as ArrayBuffer) };
    }
    case "int": {
      const wide = BigInt(output.value);
      return Number.isSafeInteger(Number(wide)) ? Number(wide) : wide;
    }
    case "float":
      return Number(output.value); // text where it is no number, or infinite
    case "none":
      return null;
    default:
      return output.value;
  }
}

/** Copies what a run gave out of the module, by name and by position. */
export function takeOutputs(method: MethodInfo, wasm: Wasm): Outputs {
  const { outputs } = wasm.json() as { outputs: DescribedOutput[] };
  const all: Record<string | number, OutputValue> = {};
  outputs.forEach((output, i) => {
    const value = outputOf(output, wasm);
    all[i] = value;
    all[method.outputs[i]?.name ?? `output${i}`] = value;
  });
  return all;
}

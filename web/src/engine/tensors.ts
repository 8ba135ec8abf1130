// Values of a program between JavaScript and the module. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import type { DType, InputValue, MethodInfo, Outputs, OutputValue, Tensor, TypedArray, ValueInfo } from "../types.js";
import type { Wasm } from "./wasm.js";

type ArrayType = { new (buffer: ArrayBuffer): TypedArray; readonly BYTES_PER_ELEMENT: number };
const kArrays: Readonly<Record<DType, ArrayType>> = {
  f32: Float32Array, f64: Float64Array, f16: Uint16Array, bf16: Uint16Array, i64: BigInt64Array, i32: Int32Array, i16: Int16Array, i8: Int8Array,
  u8: Uint8Array, bool: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array,
};

/** As the module reads it. */
type Described = Record<string, unknown>;

function isTensor(value: object): value is Tensor {
  return "dtype" in value && "dims" in value && "data" in value;
}

/** Numbers as elements of a type. */
function arrayOf(values: readonly number[], dtype: DType): TypedArray {
  if (dtype === "i64") return BigInt64Array.from(values, (v) => BigInt(v));
  if (dtype === "u64") return BigUint64Array.from(values, (v) => BigInt(v));
  if (dtype === "f16" || dtype === "bf16") throw new PteryxError("invalid-argument", `${dtype} takes its bits in a Uint16Array`);
  return (kArrays[dtype] as unknown as { from(values: readonly number[]): TypedArray }).from(values);
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

function tensorFor(value: Tensor | TypedArray | readonly number[], info: ValueInfo): Tensor {
  if (!Array.isArray(value) && !ArrayBuffer.isView(value)) return value as Tensor;
  const dtype = info.dtype ?? "f32";
  const data = Array.isArray(value) ? arrayOf(value as readonly number[], dtype) : (value as TypedArray);
  return { dtype, dims: dimsFor(data.length, info), data };
}

/** Inputs in the module's memory, for as long as a run takes. */
export class Inputs {
  readonly described: Described[] = [];
  readonly #memory: number[] = [];

  constructor(readonly wasm: Wasm) {}

  add(value: InputValue, info: ValueInfo, method: string): void {
    const wrong = (): PteryxError =>
      new PteryxError("invalid-argument", `input '${info.name}' of '${method}': expected ${info.kind === "tensor" ? `a tensor of ${info.dtype}` : info.kind}, got ${typeof value}`);
    if (value === null) this.described.push({ kind: "none" });
    else if (typeof value === "boolean") this.described.push({ kind: "bool", value });
    else if (typeof value === "string") this.described.push({ kind: "string", value });
    else if (typeof value === "bigint") this.described.push({ kind: "int", value: String(value) });
    else if (typeof value === "number" && info.kind === "tensor") this.#addTensor(tensorFor([value], info), info, method);
    else if (typeof value === "number") this.described.push(info.kind === "float" ? { kind: "float", value } : { kind: "int", value: String(value) });
    else if (typeof value === "object" && (Array.isArray(value) || ArrayBuffer.isView(value) || isTensor(value))) this.#addTensor(tensorFor(value as Tensor, info), info, method);
    else throw wrong();
  }
  #addTensor(tensor: Tensor, info: ValueInfo, method: string): void {
    const array = kArrays[tensor.dtype];
    if (array === undefined || tensor.data.BYTES_PER_ELEMENT !== array.BYTES_PER_ELEMENT)
      throw new PteryxError("invalid-argument", `input '${info.name}' of '${method}': expected elements of ${tensor.dtype}, got a ${tensor.data.constructor.name}`);
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

// Parts of the engine by themselves, where what they stand on fails. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import binaryen from "binaryen";
import { bundle } from "./support/bundle.mjs";

const kParts = ["engine", "gpu_device", "gpu_imports", "host", "source_imports", "tensors", "wasm"];
let bundled, Engine, Gpus, Host, Inputs, openGpu, Sources, Wasm;
before(async () => {
  bundled = await bundle(kParts.map((name) => `src/engine/${name}.ts`));
  [{ Engine }, { openGpu }, { Gpus }, { Host }, { Sources }, { Inputs }, { Wasm }] = await Promise.all(kParts.map(bundled.load));
});
after(() => bundled.remove());

const kModule = `(module
  (import "pteryx" "boom" (func $boom (param i32)))
  (memory (export "memory") 1)
  (func (export "_initialize"))
  (func (export "bounds") (param i32) (drop (i32.load (i32.const 100000))))
  (func $deep (export "deep") (param i32) (call $deep (i32.const 1)) (call $boom (i32.const 0)))
  (func (export "boom") (param i32) (call $boom (local.get 0))))`;
const kThrown = [new RangeError("Array buffer allocation failed"), new Error("bad_alloc was thrown in -fno-exceptions mode"), new RangeError("offset is out of bounds")];

test("a module that stops is out of memory only where an allocation failed", async () => {
  const module = await WebAssembly.compile(binaryen.parseText(kModule).emitBinary());
  const more = () => ({
    boom: (i) => {
      throw kThrown[i];
    },
  });
  for (const [name, argument, code] of [["boom", 0, "out-of-memory"], ["boom", 1, "out-of-memory"], ["boom", 2, "internal"], ["bounds", 0, "internal"], ["deep", 0, "internal"]]) {
    const wasm = await Wasm.instantiate(module, { more });
    for (let tries = 0; tries < 2; tries++) {
      assert.throws(() => wasm.call(name, argument), (error) => {
        assert.equal(error.code, code, error.message);
        return true;
      });
    }
  }
});

test("bytes of a source for which there is no memory are out of memory, not a failure to read", async () => {
  for (const [message, code] of [["Array buffer allocation failed", "out-of-memory"], ["something else", "io"]]) {
    const sources = new Sources(new Host());
    const { id } = sources.add({ name: "large", size: 2 ** 40, read: () => Promise.reject(new RangeError(message)), close: () => {} });
    await assert.rejects(sources.read(id, 0, 2 ** 40), { code });
    assert.equal(sources.failure.code, code);
  }
});

test("an engine whose module stopped lets go of its sources, its threads and its GPU", () => {
  const closed = [];
  const wasm = {
    call: () => {
      throw new Error("stopped");
    },
    sources: { close: () => closed.push("sources") },
  };
  new Engine({ wasm, close: () => closed.push("threads") }, 1, { device: { destroy: () => closed.push("GPU") } }, []).close();
  assert.deepEqual(closed, ["sources", "threads", "GPU"]);
});

test("a run that was cancelled while the CPU computed rejects all the same", async () => {
  const calls = [];
  let stopped;
  const wasm = {
    call: (name) => calls.push(name),
    checkJson: () => 1,
    finish: async () => (stopped = new Error("cancelled")),
    json: () => ({ outputs: [] }),
    host: { breathe: async () => calls.push("breathe") },
  };
  const engine = new Engine({ wasm }, 1, undefined, []);
  await assert.rejects(engine.run(7, { name: "forward", inputs: [], outputs: [] }, [], () => stopped), { message: "cancelled" });
  assert.deepEqual(calls, ["breathe", "program_cancel"]);
});

test("between the turns of what computes, timers have theirs", async () => {
  const host = new Host();
  for (let turns = 0; turns < 3; turns++) {
    let rang = false;
    setTimeout(() => (rang = true), 1);
    for (const began = performance.now(); performance.now() - began < 20;);
    await host.breathe();
    assert.ok(rang);
  }
});

test("a GPU has the name that its adapter has", async () => {
  const open = (info) => openGpu({ requestAdapter: async () => ({ features: new Set(), limits: {}, info, requestDevice: async () => ({ limits: {} }) }) });
  assert.equal((await open({ vendor: "maker", architecture: "new", device: "Card 5", description: "driver 1.2" })).name, "Card 5");
  assert.equal((await open({ vendor: "maker", architecture: "new", device: "", description: "" })).name, "maker new");
});

test("an adapter that says nothing of itself, as those of older browsers, is a GPU", async () => {
  const adapter = { features: new Set(), limits: {}, requestDevice: async () => ({ limits: {} }) };
  const { name, software, description } = await openGpu({ requestAdapter: async () => adapter });
  assert.deepEqual([name, software, description.vendor, description.architecture], ["GPU", false, "", ""]);
});

for (const device of ["gpu", "auto"]) for (const hanging of ["platform", "requestAdapter", "requestDevice"]) {
  test(`${device}: a GPU that does not come back from ${hanging} is left when the signal says so, and closed should it come later`, { timeout: 10_000 }, async () => {
    let arrive;
    let destroyed = 0;
    const answer = (name, value) => (name === hanging ? new Promise((resolve) => (arrive = () => resolve(value))) : Promise.resolve(value));
    const opened = { limits: {}, destroy: () => destroyed++ };
    const adapter = { features: new Set(), limits: {}, info: { description: "fake" }, requestDevice: () => answer("requestDevice", opened) };
    const gpu = () => answer("platform", { requestAdapter: () => answer("requestAdapter", adapter) });
    const controller = new AbortController();
    const opening = Engine.open({ device, gpu, modules: {}, signal: controller.signal });
    while (arrive === undefined) await sleep(1);
    controller.abort();
    await assert.rejects(opening, { code: "cancelled", message: "the GPU: cancelled" });
    assert.equal(destroyed, 0);
    arrive();
    await sleep(1);
    assert.equal(destroyed, 1);
    await assert.rejects(Engine.open({ device, gpu, modules: {}, signal: controller.signal }), { code: "cancelled" }, "a signal that was aborted before");
  });
}

class Half extends Uint16Array {
  get [Symbol.toStringTag]() {
    return "Float16Array"; // as newer engines have it
  }
}
const kFitting = {
  f32: [Float32Array], f64: [Float64Array], f16: [Uint16Array, Half], bf16: [Uint16Array], i64: [BigInt64Array], i32: [Int32Array], i16: [Int16Array], i8: [Int8Array],
  u8: [Uint8Array, Uint8ClampedArray, Buffer], bool: [Uint8Array, Uint8ClampedArray, Buffer], u16: [Uint16Array], u32: [Uint32Array], u64: [BigUint64Array],
};
/** What becomes of a value that is given for an input: its bytes, or the message of what it throws. */
function given(value, dtype) {
  const memory = new Uint8Array(64);
  const wasm = { allocate: () => 0, release: () => {}, host: { memory: { view: (at, size) => memory.subarray(at, at + size) } } };
  const inputs = new Inputs(wasm);
  try {
    inputs.add(value, { name: "x", kind: "tensor", dtype, dims: [1], dynamic: false }, "forward");
    return memory.slice(0, inputs.described[0].bytes);
  } catch (error) {
    assert.equal(error.code, "invalid-argument", error.message);
    return error.message;
  }
}

test("a tensor takes arrays of its own kind only", () => {
  const arrays = [...new Set([...Object.values(kFitting).flat(), DataView])];
  for (const [dtype, fitting] of Object.entries(kFitting)) for (const type of arrays) {
    const make = () => (type === Buffer ? Buffer.alloc(1) : type === DataView ? new DataView(new ArrayBuffer(8)) : new type(1));
    for (const value of [make(), { dtype, dims: [1], data: make() }]) {
      const outcome = given(value, dtype);
      if (fitting.includes(type)) assert.equal(outcome.length, make().byteLength);
      else assert.equal(outcome, `input 'x' of 'forward': expected elements of ${dtype}, got ${type.name}`);
    }
  }
  assert.match(given({ dtype: "f31", dims: [1], data: new Float32Array(1) }, "f32"), /expected elements of f31, got Float32Array$/);
  assert.match(given({ dtype: "f32", dims: [1], data: undefined }, "f32"), /expected elements of f32, got undefined$/);
  assert.match(given({ dims: [1] }, "f32"), /expected a tensor of f32, got Object$/);
  assert.match(given(undefined, "f32"), /expected a tensor of f32, got undefined$/);
});

test("a tensor takes numbers that it holds as they are", () => {
  const wide = [0, -1, 2 ** 40, 2n ** 62n];
  const kTaken = {
    f32: [0.5, NaN, -Infinity, 1e300], f64: [0.5, NaN], i64: wide, u64: [0, 2n ** 63n], i32: [2 ** 31 - 1, -(2 ** 31)], u32: [2 ** 32 - 1], i16: [-32768], u16: [65535], i8: [-128, 127],
    u8: [255], bool: [0, 1, true, false],
  };
  for (const [dtype, values] of Object.entries(kTaken)) for (const value of values) {
    const [array] = kFitting[dtype];
    const expected = new array([typeof array.prototype.at.call(new array(1), 0) === "bigint" ? BigInt(value) : Number(value)]);
    assert.deepEqual(given([value], dtype), new Uint8Array(expected.buffer), `${value} as ${dtype}`);
  }
  const kRefused = {
    f32: ["1", undefined, null, 1n], f64: [{}], i64: [0.5, NaN, Infinity, 2 ** 63, -(2n ** 63n) - 1n, undefined], u64: [-1, 0.5, 2n ** 64n], i32: [0.5, NaN, 2 ** 31, 2 ** 40, 1n, undefined, null],
    u32: [-1], i16: [40000], u16: [-1, 65536], i8: [128], u8: [300, -1, 0.5], bool: [2, NaN, 0.5],
  };
  for (const [dtype, values] of Object.entries(kRefused)) for (const value of values) {
    assert.match(String(given([value], dtype)), new RegExp(`^input 'x' of 'forward': expected elements of ${dtype}, got `), `${String(value)} as ${dtype}`);
  }
  for (const dtype of ["f16", "bf16"]) assert.equal(given([0.5], dtype), `input 'x' of 'forward': expected a Uint16Array with the bits of ${dtype}, got [0.5]`);
});

/** A device that fails by `failing`, and is lost a moment later if `lostMs` says so. */
function fakeDevice(failing, lostMs) {
  const rejected = async () => {
    throw new DOMException("it failed", failing === "upload" ? "OperationError" : "AbortError");
  };
  return {
    lost: lostMs === undefined ? new Promise(() => {}) : sleep(lostMs, { message: "the driver was reset", reason: "unknown" }),
    addEventListener: () => {},
    pushErrorScope: () => {},
    popErrorScope: failing === "buffer" ? rejected : async () => null,
    createBuffer: () => ({ mapAsync: rejected, unmap: () => {}, destroy: () => {} }),
    queue: {
      writeBuffer: () => {
        throw new DOMException("it failed", "OperationError");
      },
    },
  };
}

/** The functions that the module imports, of a device; `message`: the text of the last error. */
function importsOf(device) {
  const host = new Host();
  host.memory.attach(new WebAssembly.Memory({ initial: 1 }));
  const gpus = new Gpus(host, new Sources(host));
  const gpu = gpus.add({ ...fakeDevice(), ...device });
  const { message_size, message_copy } = host.messageImports();
  const message = () => {
    message_copy(64);
    return host.memory.text(64, message_size());
  };
  return { gpu, imports: gpus.imports(), message };
}
class GPUValidationError extends Error {}
class GPUOutOfMemoryError extends Error {}

test("errors that nobody asked for are told once, the first of them, and by what they are", () => {
  const listeners = {};
  const { gpu, imports, message } = importsOf({ addEventListener: (name, listener) => (listeners[name] = listener) });
  assert.equal(imports.gpu_error(gpu), 0);
  for (const [code, error] of [[4, new GPUValidationError("a binding is too small")], [5, new GPUOutOfMemoryError("no room")]]) {
    listeners.uncapturederror({ error });
    listeners.uncapturederror({ error: new GPUValidationError("what followed from it") });
    assert.equal(imports.gpu_error(gpu), code);
    assert.equal(message(), error.message);
    assert.equal(imports.gpu_error(gpu), 0);
  }
});

for (const [what, messages, pattern] of [
  ["what its shader's compiler says", [{ type: "warning", lineNum: 1 }, { type: "error", lineNum: 3, message: "unresolved value 'x'" }], /^line 3: unresolved value 'x'$/],
  ["the error, where the compiler says nothing", [], /^GPUPipelineError: it takes too much$/],
  ["the error, where the compiler cannot be asked", undefined, /^GPUPipelineError: it takes too much$/],
]) test(`a pipeline that cannot be made fails with ${what}`, async () => {
  const { gpu, imports, message } = importsOf({
    createBindGroupLayout: () => ({}),
    createPipelineLayout: () => ({}),
    createShaderModule: () => ({ getCompilationInfo: async () => ({ messages: messages.slice() }) }),
    createComputePipelineAsync: async () => {
      throw Object.assign(new Error("it takes too much"), { name: "GPUPipelineError" });
    },
  });
  imports.gpu_pipeline_create(gpu, 1, 0, 0, 0, 0, 0, 0, 0, 2);
  let code;
  while ((code = imports.gpu_pipeline_answer(gpu, 1)) === -1) await sleep(5);
  assert.equal(code, 4);
  assert.match(message(), pattern);
});

for (const failing of ["buffer", "read", "upload"]) for (const lostMs of [30, undefined]) {
  test(`${failing}: what fails ${lostMs ? "just before the device is told to be lost is laid on that" : "by itself is not"}`, async () => {
    const host = new Host();
    const sources = new Sources(host);
    const gpus = new Gpus(host, sources);
    const gpu = gpus.add(fakeDevice(failing, lostMs));
    const imports = gpus.imports();
    const answer = async (ask) => {
      for (let result = ask(); ; result = ask()) {
        if (result !== -1) return result;
        await sleep(5);
      }
    };
    imports.gpu_buffer_create(gpu, 1, 64, 2, 0, 0);
    let code = await answer(() => imports.gpu_buffer_answer(gpu, 1));
    if (failing !== "buffer") assert.equal(code, 0);
    if (failing === "read") {
      imports.gpu_read(gpu, 1, 1, 0, 16);
      code = await answer(() => imports.gpu_read_answer(gpu, 1));
    } else if (failing === "upload") {
      const { id } = sources.add({ name: "weights", size: 64, read: async (_, size) => new Uint8Array(size), close: () => {} });
      imports.gpu_write_source(gpu, 1, 0, id, 0, 64);
      code = await answer(() => imports.gpu_buffer_answer(gpu, 1));
    }
    assert.equal(code, 4, "an error of the device");
    assert.equal(gpus.isLost(), lostMs !== undefined);
  });
}

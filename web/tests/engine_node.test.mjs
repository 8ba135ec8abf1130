// Parts of the engine by themselves, where what they stand on fails. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import binaryen from "binaryen";
import { bundle } from "./support/bundle.mjs";

let bundled, Engine, Gpus, Host, Sources, Wasm;
before(async () => {
  bundled = await bundle(["engine", "gpu_imports", "host", "source_imports", "wasm"].map((name) => `src/engine/${name}.ts`));
  [{ Engine }, { Gpus }, { Host }, { Sources }, { Wasm }] = await Promise.all(["engine", "gpu_imports", "host", "source_imports", "wasm"].map(bundled.load));
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

// The module of tokenizers and templates (web/tests/module), run with the engine's own imports. SPDX-License-Identifier: BSD-3-Clause
import { readFile } from "node:fs/promises";
import { importTs } from "./import_ts.mjs";

const parts = await Promise.all(["module_memory", "number_imports", "regex", "text_imports", "wasi_imports"].map((name) => importTs(`src/engine/${name}.ts`)));
export const engine = Object.assign({}, ...parts);

/** An instance whose calls take texts and bytes, and give what the module made. A refusal is thrown as an Error. */
export class TextModule {
  /** What the module wrote to its streams. */
  lines = [];

  static async load() {
    const path = process.env.PTERYX_TEXT_MODULE;
    if (!path) throw new Error("PTERYX_TEXT_MODULE does not name text.wasm");
    const module = new TextModule();
    module.memory = new engine.ModuleMemory();
    const imports = {
      pteryx: {
        ...engine.makeTextImports(module.memory),
        ...engine.makeNumberImports(module.memory),
        stop: (text, size) => {
          throw new Error(module.memory.text(text, size));
        },
      },
      wasi_snapshot_preview1: engine.makeWasiImports(module.memory),
    };
    const { instance } = await WebAssembly.instantiate(await readFile(path), imports);
    module.exports = instance.exports;
    module.memory.attach(instance.exports.memory);
    instance.exports._initialize();
    return module;
  }

  /** Calls an export; texts and bytes become an address and a size. */
  call(name, ...args) {
    const held = [];
    const numbers = args.flatMap((arg) => {
      if (typeof arg === "number") return [arg];
      const bytes = typeof arg === "string" ? this.memory.encode(arg) : arg;
      const address = this.exports.allocate(bytes.length + 1) >>> 0;
      held.push(address);
      this.memory.bytes.set(bytes, address);
      return [address, bytes.length];
    });
    const done = this.exports[name](...numbers);
    for (const address of held) this.exports.release(address);
    if (done === 0) throw new Error(this.text());
    return this;
  }
  bytes() {
    return this.memory.view(this.exports.result_data(), this.exports.result_size()).slice();
  }
  text() {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes());
  }
  words() {
    return new Uint32Array(this.bytes().buffer);
  }
  ids() {
    return Array.from(this.words());
  }
}

// The memory of the WebAssembly module, as the imports and the engine use it. SPDX-License-Identifier: BSD-3-Clause

/** Views of a memory that may grow, which takes the views along. */
export class ModuleMemory {
  #bytes = new Uint8Array();
  #words = new Uint32Array();
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  /** Imports are made before the module, and so before its memory: see `attach`. */
  constructor(public memory: WebAssembly.Memory = new WebAssembly.Memory({ initial: 0 })) {}

  attach(memory: WebAssembly.Memory): void {
    this.memory = memory;
  }

  get size(): number {
    return this.memory.buffer.byteLength;
  }
  /** All of it, by bytes. Stands until the module allocates. */
  get bytes(): Uint8Array {
    if (this.#bytes.buffer !== this.memory.buffer) this.#bytes = new Uint8Array(this.memory.buffer);
    return this.#bytes;
  }
  /** All of it, by words of 32 bits. */
  get words(): Uint32Array {
    if (this.#words.buffer !== this.memory.buffer) this.#words = new Uint32Array(this.memory.buffer);
    return this.#words;
  }
  view(address: number, size: number): Uint8Array {
    return this.bytes.subarray(address >>> 0, (address >>> 0) + size);
  }
  /** A 64-bit number, exact up to 2^53. */
  wide(address: number): number {
    const at = address >>> 2;
    return this.words[at]! + this.words[at + 1]! * 2 ** 32;
  }
  f64(address: number): number {
    return new DataView(this.memory.buffer, address >>> 0, 8).getFloat64(0, true);
  }
  text(address: number, size: number): string {
    const view = this.view(address, size);
    // Browsers do not decode from memory that threads share.
    return this.#decoder.decode(this.memory.buffer instanceof ArrayBuffer ? view : view.slice());
  }
  encode(text: string): Uint8Array {
    return this.#encoder.encode(text);
  }
}

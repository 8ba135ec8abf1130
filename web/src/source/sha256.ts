// SHA-256 of bytes that come in parts, which Web Crypto cannot do. SPDX-License-Identifier: BSD-3-Clause

// The first 32 bits of the fractional parts of the cube roots and square roots of the first primes (FIPS 180-4).
const { ROUNDS, START } = (() => {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p !== 0)) primes.push(n);
  const fraction = (x: number): number => Math.floor((x - Math.floor(x)) * 2 ** 32) | 0;
  return { ROUNDS: Int32Array.from(primes, (p) => fraction(Math.cbrt(p))), START: Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p))) };
})();

/** `update` with each part in order, then `hex` once. */
export class Sha256 {
  readonly #state = START.slice();
  readonly #words = new Int32Array(64);
  readonly #pending = new Uint8Array(64);
  #pendingBytes = 0;
  #totalBytes = 0;

  update(bytes: Uint8Array): this {
    this.#totalBytes += bytes.length;
    let at = 0;
    if (this.#pendingBytes > 0) {
      at = Math.min(64 - this.#pendingBytes, bytes.length);
      this.#pending.set(bytes.subarray(0, at), this.#pendingBytes);
      this.#pendingBytes += at;
      if (this.#pendingBytes < 64) return this;
      this.#blocks(this.#pending, 0, 64);
      this.#pendingBytes = 0;
    }
    const end = at + ((bytes.length - at) & ~63);
    this.#blocks(bytes, at, end);
    this.#pending.set(bytes.subarray(end), 0);
    this.#pendingBytes = bytes.length - end;
    return this;
  }

  /** The digest in lower case. */
  hex(): string {
    const bits = this.#totalBytes * 8;
    const padding = new Uint8Array(((this.#pendingBytes < 56 ? 56 : 120) - this.#pendingBytes) + 8);
    padding[0] = 0x80;
    const view = new DataView(padding.buffer);
    view.setUint32(padding.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(padding.length - 4, bits >>> 0);
    this.update(padding);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #blocks(bytes: Uint8Array, from: number, to: number): void {
    const state = this.#state;
    const w = this.#words;
    const k = ROUNDS;
    let s0 = state[0]!, s1 = state[1]!, s2 = state[2]!, s3 = state[3]!, s4 = state[4]!, s5 = state[5]!, s6 = state[6]!, s7 = state[7]!;
    for (let at = from; at < to; at += 64) {
      for (let i = 0, p = at; i < 16; i++, p += 4) w[i] = (bytes[p]! << 24) | (bytes[p + 1]! << 16) | (bytes[p + 2]! << 8) | bytes[p + 3]!;
      // Sums are cut to 32 bits two by two: engines otherwise go by way of floating point, three times slower.
      for (let i = 16; i < 64; i++) {
        const x = w[i - 15]!, y = w[i - 2]!;
        const low = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
        const high = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
        w[i] = (((w[i - 16]! + low) | 0) + ((w[i - 7]! + high) | 0)) | 0;
      }
      let a = s0, b = s1, c = s2, d = s3, e = s4, f = s5, g = s6, h = s7;
      for (let i = 0; i < 64; i++) {
        const high = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
        const t1 = (((((h + high) | 0) + (g ^ (e & (f ^ g)))) | 0) + ((k[i]! + w[i]!) | 0)) | 0;
        const low = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
        const t2 = (low + ((a & b) | (c & (a | b)))) | 0;
        h = g;
        g = f;
        f = e;
        e = (d + t1) | 0;
        d = c;
        c = b;
        b = a;
        a = (t1 + t2) | 0;
      }
      s0 = (s0 + a) | 0, s1 = (s1 + b) | 0, s2 = (s2 + c) | 0, s3 = (s3 + d) | 0;
      s4 = (s4 + e) | 0, s5 = (s5 + f) | 0, s6 = (s6 + g) | 0, s7 = (s7 + h) | 0;
    }
    state.set([s0, s1, s2, s3, s4, s5, s6, s7]);
  }
}

/** Of a text, as UTF-8. */
export function sha256Hex(text: string): string {
  return new Sha256().update(new TextEncoder().encode(text)).hex();
}

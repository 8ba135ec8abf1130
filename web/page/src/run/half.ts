// 16-bit floats, which JavaScript has no arrays of everywhere. SPDX-License-Identifier: BSD-3-Clause

export function halfToFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const kFloat = new Float32Array(1);
const kBits = new Uint32Array(kFloat.buffer);

/** Rounds to nearest, ties to even. */
export function floatToHalf(value: number): number {
  kFloat[0] = value;
  const bits = kBits[0]!;
  const sign = (bits >>> 16) & 0x8000;
  const rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return sign | 0x7e00;
  if (rest >= 0x477ff000) return sign | 0x7c00;
  if (rest < 0x38800000) {
    // Subnormal: a multiple of 2^-24.
    const scaled = Math.abs(kFloat[0]) * 2 ** 24;
    const low = Math.floor(scaled);
    const over = scaled - low;
    return sign | (low + (over > 0.5 || (over === 0.5 && low & 1) ? 1 : 0));
  }
  const rebased = rest - 0x38000000;
  const kept = rebased >>> 13;
  const lost = rebased & 0x1fff;
  return sign | (kept + (lost > 0x1000 || (lost === 0x1000 && kept & 1) ? 1 : 0));
}

export function bfloatToFloat(bits: number): number {
  kBits[0] = bits << 16;
  return kFloat[0]!;
}

/** Rounds to nearest, ties to even. */
export function floatToBfloat(value: number): number {
  kFloat[0] = value;
  const bits = kBits[0]!;
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

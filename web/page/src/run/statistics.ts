// What a tensor's values look like at a glance. SPDX-License-Identifier: BSD-3-Clause

import type { Tensor } from "../../../src/types.ts";
import { elementAt } from "./tensor.ts";

export interface Statistics {
  readonly count: number;
  /** Of the finite values; NaN where there are none. */
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly deviation: number;
  readonly nan: number;
  readonly infinite: number;
  /** Counts of finite values in equal steps from `min` to `max`. */
  readonly histogram: readonly number[];
}

export function statisticsOf(tensor: Tensor, bins = 40): Statistics {
  const count = tensor.data.length;
  let [min, max, mean, squares, finite, nan, infinite] = [Infinity, -Infinity, 0, 0, 0, 0, 0];
  for (let i = 0; i < count; i++) {
    const value = elementAt(tensor, i);
    if (Number.isNaN(value)) nan++;
    else if (!Number.isFinite(value)) infinite++;
    else {
      // Welford's update: stable for means far from zero.
      finite++;
      const before = value - mean;
      mean += before / finite;
      squares += before * (value - mean);
      min = Math.min(min, value);
      max = Math.max(max, value);
    }
  }
  const histogram = new Array<number>(bins).fill(0);
  const scale = max > min ? bins / (max - min) : 0;
  for (let i = 0; i < count; i++) {
    const value = elementAt(tensor, i);
    if (Number.isFinite(value)) histogram[Math.min(bins - 1, Math.floor((value - min) * scale))]!++;
  }
  if (finite === 0) return { count, min: NaN, max: NaN, mean: NaN, deviation: NaN, nan, infinite, histogram };
  return { count, min, max, mean, deviation: Math.sqrt(squares / finite), nan, infinite, histogram };
}

/** Whether the tensor is one row of scores: the classes of a picture, the tokens of a vocabulary. */
export function isScores(dims: readonly number[]): boolean {
  const wide = dims.filter((d) => d !== 1);
  return wide.length === 1 && wide[0]! >= 2;
}

export interface Ranked { readonly index: number; readonly value: number; readonly share: number }

/** The greatest values, with their share by softmax, or as they are where they are shares already. */
export function rank(tensor: Tensor, count: number): Ranked[] {
  const length = tensor.data.length;
  let [most, least, sum] = [-Infinity, Infinity, 0];
  const top: { index: number; value: number }[] = [];
  for (let index = 0; index < length; index++) {
    const value = elementAt(tensor, index);
    if (Number.isNaN(value)) continue;
    most = Math.max(most, value);
    least = Math.min(least, value);
    sum += value;
    if (top.length === count && value <= top[count - 1]!.value) continue;
    let at = top.length;
    while (at > 0 && top[at - 1]!.value < value) at--;
    top.splice(at, 0, { index, value });
    top.length = Math.min(top.length, count);
  }
  const shares = least >= 0 && most <= 1 && Math.abs(sum - 1) < 0.01;
  let total = 0;
  for (let i = 0; !shares && i < length; i++) {
    const value = elementAt(tensor, i);
    if (!Number.isNaN(value)) total += Math.exp(value - most);
  }
  return top.map((t) => ({ ...t, share: shares ? t.value : Math.exp(t.value - most) / total }));
}

/** Names of classes from a file: one to a line, a JSON array, or a JSON object from number to name. */
export function parseLabels(text: string): string[] {
  const trimmed = text.trim();
  if (!/^[[{]/.test(trimmed)) return trimmed.split(/\r?\n/).map((line) => line.trim());
  const value: unknown = JSON.parse(trimmed);
  const name = (entry: unknown): string => String(Array.isArray(entry) ? entry[entry.length - 1] : entry);
  if (Array.isArray(value)) return value.map(name);
  const labels: string[] = [];
  for (const [key, entry] of Object.entries(value as Record<string, unknown>)) {
    const index = Number(key);
    if (Number.isInteger(index) && index >= 0 && index < 1e6) labels[index] = name(entry);
  }
  return Array.from(labels, (label) => label ?? "");
}

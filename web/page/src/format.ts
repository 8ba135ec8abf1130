// Numbers as people read them. SPDX-License-Identifier: BSD-3-Clause

import type { DeviceInfo } from "../../src/types.ts";

const kUnits = ["bytes", "kB", "MB", "GB", "TB"] as const;

/** `1.2 GB`, `340 MB`, `12 bytes`: powers of 1000, as file managers and download pages say. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes) || bytes < 0) return "unknown size";
  let unit = 0;
  let value = bytes;
  // 999.5 would round up to "1000 kB".
  while (value >= 999.5 && unit < kUnits.length - 1) {
    value /= 1000;
    unit++;
  }
  if (unit === 0) return bytes === 1 ? "1 byte" : `${Math.round(value)} bytes`;
  return `${value.toFixed(value < 9.95 ? 1 : 0)} ${kUnits[unit]}`;
}

/** `350 MB of 1.2 GB`, or only what is there where the total is not known. */
export function formatBytesOf(done: number, total: number): string {
  return total > 0 ? `${formatBytes(done)} of ${formatBytes(total)}` : formatBytes(done);
}

/** `CPU · 12 MB of memory`: what runs a program, and what it holds. The CPU's kernels have weights and all else in the module's heap. */
export function formatDevice({ kind, name, memoryBytes, heapBytes }: DeviceInfo): string {
  return `${name} · ${kind === "gpu" ? `${formatBytes(memoryBytes)} of GPU memory` : `${formatBytes(heapBytes)} of memory`}`;
}

/** `12,345`. */
export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}

/** `1 node`, `12,345 nodes`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** `0.4 ms`, `350 ms`, `1.4 s`, `2 min 5 s`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "–";
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Tokens per second: `0.42`, `12.3`, `140`. */
export function formatRate(perSecond: number): string {
  if (!Number.isFinite(perSecond) || perSecond <= 0) return "–";
  return perSecond < 1 ? perSecond.toFixed(2) : perSecond < 99.95 ? perSecond.toFixed(1) : String(Math.round(perSecond));
}

/** One element of a tensor, in at most about ten characters. */
export function formatElement(value: number | bigint): string {
  if (typeof value === "bigint") return value.toString();
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value).replace("-", "−");
  const size = Math.abs(value);
  const text = size >= 1e5 || size < 1e-3 ? value.toExponential(3) : value.toPrecision(5);
  return text.replaceAll("-", "−");
}

/** `[1, 3, 224, 224]`; dims that may be smaller carry `≤`. */
export function formatDims(dims: readonly number[], dynamic = false): string {
  return `[${dynamic ? "≤ " : ""}${dims.join(", ")}]`;
}

/** `12 minutes ago`. */
export function formatAgo(time: number, now: number): string {
  const minutes = Math.round((now - time) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${plural(minutes, "minute")} ago`;
  const hours = Math.round(minutes / 60);
  return hours < 24 ? `${plural(hours, "hour")} ago` : `${plural(Math.round(hours / 24), "day")} ago`;
}

/** What an address is called in a list: the last part of its path. */
export function nameOfUrl(url: string): string {
  const path = url.replace(/[?#].*$/s, "").replace(/\/+$/, "");
  const last = path.slice(path.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(last) || url;
  } catch {
    return last || url;
  }
}

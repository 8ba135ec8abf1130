// Pictures into tensors and back. SPDX-License-Identifier: BSD-3-Clause

import type { DType, Tensor } from "../../../src/types.ts";
import { elementAt, tensorOf } from "./tensor.ts";

/** How an input or output of that shape reads as a picture. */
export interface ImageShape {
  readonly layout: "NCHW" | "NHWC";
  readonly channels: 1 | 3 | 4;
  readonly height: number;
  readonly width: number;
}

/** What programs expect of the values. */
export type Normalisation = "unit" | "signed" | "imagenet" | "bytes";
export const kNormalisations: Readonly<Record<Normalisation, string>> = {
  unit: "0 to 1",
  signed: "−1 to 1",
  imagenet: "ImageNet mean and std",
  bytes: "0 to 255",
};
/** `cover` cuts what sticks out, `contain` leaves black bars, `stretch` changes the proportions. */
export type Fit = "cover" | "contain" | "stretch";
export interface ImageOptions {
  readonly normalisation: Normalisation;
  readonly order: "rgb" | "bgr";
  readonly fit: Fit;
}

/** A shape of rank 3 or 4 with one picture of 1, 3 or 4 channels; `null` for any other. */
export function imageShape(dims: readonly number[]): ImageShape | null {
  const plain = dims.length === 4 && dims[0] === 1 ? dims.slice(1) : dims;
  if (plain.length !== 3) return null;
  const [a, b, c] = plain as [number, number, number];
  const isChannels = (n: number): n is 1 | 3 | 4 => n === 1 || n === 3 || n === 4;
  if (isChannels(a) && b > 4 && c > 4) return { layout: "NCHW", channels: a, height: b, width: c };
  if (isChannels(c) && a > 4 && b > 4) return { layout: "NHWC", channels: c, height: a, width: b };
  return null;
}

export interface Rect { readonly x: number; readonly y: number; readonly width: number; readonly height: number }

/** Where the whole source picture is drawn on the target. */
export function fitRect(source: { width: number; height: number }, target: { width: number; height: number }, fit: Fit): Rect {
  if (fit === "stretch") return { x: 0, y: 0, width: target.width, height: target.height };
  const across = target.width / source.width;
  const down = target.height / source.height;
  const scale = fit === "cover" ? Math.max(across, down) : Math.min(across, down);
  const width = source.width * scale;
  const height = source.height * scale;
  return { x: (target.width - width) / 2, y: (target.height - height) / 2, width, height };
}

const kMean = [0.485, 0.456, 0.406] as const;
const kDeviation = [0.229, 0.224, 0.225] as const;

/** RGBA bytes of the right size as a tensor. `channel` is that of red, green, blue. */
function normalise(byte: number, channel: number, how: Normalisation): number {
  switch (how) {
    case "bytes": return byte;
    case "unit": return byte / 255;
    case "signed": return byte / 127.5 - 1;
    case "imagenet": return (byte / 255 - (kMean[channel] ?? 0)) / (kDeviation[channel] ?? 1);
  }
}

export function pixelsToTensor(rgba: ArrayLike<number>, dims: readonly number[], dtype: DType, options: ImageOptions): Tensor {
  const shape = imageShape(dims);
  if (!shape) throw new Error(`[${dims.join(", ")}] is not the shape of a picture`);
  const { channels, height, width, layout } = shape;
  const pixels = height * width;
  return tensorOf(dtype, dims, (i) => {
    const pixel = layout === "NCHW" ? i % pixels : Math.floor(i / channels);
    const place = layout === "NCHW" ? Math.floor(i / pixels) : i % channels;
    const at = pixel * 4;
    if (channels === 1) {
      const grey = 0.299 * rgba[at]! + 0.587 * rgba[at + 1]! + 0.114 * rgba[at + 2]!;
      return normalise(grey, 0, options.normalisation === "imagenet" ? "unit" : options.normalisation);
    }
    const channel = options.order === "bgr" && place < 3 ? 2 - place : place;
    return normalise(rgba[at + channel]!, channel, options.normalisation);
  });
}

/** How the values of an output are spread over black and white. */
export type ValueRange = "unit" | "signed" | "bytes" | "stretched";

export function guessRange(min: number, max: number): ValueRange {
  if (min >= -0.05 && max <= 1.05) return "unit";
  if (min >= -1.05 && max <= 1.05) return "signed";
  if (min >= -1 && max <= 256 && max > 16) return "bytes";
  return "stretched";
}

/** A tensor that has the shape of a picture, as RGBA bytes. */
export function tensorToPixels(tensor: Tensor, range: ValueRange, min: number, max: number): Uint8ClampedArray<ArrayBuffer> {
  const { channels, height, width, layout } = imageShape(tensor.dims)!;
  const pixels = height * width;
  const [low, high] = range === "unit" ? [0, 1] : range === "signed" ? [-1, 1] : range === "bytes" ? [0, 255] : [min, max];
  const scale = high > low ? 255 / (high - low) : 0;
  const rgba = new Uint8ClampedArray(pixels * 4);
  for (let pixel = 0; pixel < pixels; pixel++) {
    for (let c = 0; c < 4; c++) {
      const channel = channels === 1 ? 0 : c;
      const missing = channel >= channels || (c === 3 && channels < 4);
      const index = layout === "NCHW" ? channel * pixels + pixel : pixel * channels + channel;
      rgba[pixel * 4 + c] = missing ? 255 : (elementAt(tensor, index) - low) * scale;
    }
  }
  return rgba;
}

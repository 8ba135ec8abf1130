// One output of a method: classes, a picture, or its values. SPDX-License-Identifier: BSD-3-Clause

import type { OutputValue, Tensor } from "../../../src/types.ts";
import { download, el, svg } from "../dom.ts";
import { formatCount, formatDims, formatElement } from "../format.ts";
import { table } from "../inspect/table.ts";
import { guessRange, imageShape, tensorToPixels } from "./image_tensor.ts";
import { writeNpy } from "./npy.ts";
import { isScores, rank, type Statistics, statisticsOf } from "./statistics.ts";
import { elementAt, isFloat, isTensor } from "./tensor.ts";

export function outputCard(name: string, value: OutputValue, labels: readonly string[]): HTMLElement {
  if (!isTensor(value)) return el("section", { class: "card output" }, el("h4", {}, name), el("p", {}, value === null ? "nothing" : String(value)));
  const statistics = statisticsOf(value);
  return el("section", { class: "card output", "aria-label": `Output ${name}` },
    el("header", { class: "row" },
      el("h4", {}, name, " ", el("small", {}, `${value.dtype} ${formatDims(value.dims)}`)),
      el("button", { type: "button", class: "quiet", onclick: () => download(`${name.replace(/[^\w.-]+/g, "_")}.npy`, writeNpy(value)) }, "Download .npy")),
    isFloat(value.dtype) && isScores(value.dims) && ranking(value, labels),
    imageShape(value.dims) && picture(value, statistics),
    figures(statistics),
    histogram(statistics),
    values(value));
}

function ranking(tensor: Tensor, labels: readonly string[]): HTMLElement {
  return el("ol", { class: "ranking", "aria-label": "Greatest values" }, ...rank(tensor, 5).map((entry) =>
    el("li", {},
      el("span", { class: "label" }, labels[entry.index] || `class ${entry.index}`),
      el("meter", { min: 0, max: 1, value: entry.share, "aria-hidden": "true" }),
      el("span", { class: "share" }, `${(entry.share * 100).toFixed(1)} %`),
      el("small", {}, formatElement(entry.value)))));
}

const kRanges = { unit: "0 to 1 as black to white", signed: "−1 to 1 as black to white", bytes: "0 to 255 as black to white", stretched: "min to max as black to white" } as const;

function picture(tensor: Tensor, { min, max }: Statistics): HTMLElement {
  const { width, height } = imageShape(tensor.dims)!;
  const range = guessRange(min, max);
  const canvas = el("canvas", { width, height, class: width < 160 ? "preview small" : "preview", role: "img", "aria-label": `The output as a picture of ${width} by ${height}` });
  canvas.getContext("2d")?.putImageData(new ImageData(tensorToPixels(tensor, range, min, max), width, height), 0, 0);
  return el("figure", {}, canvas, el("figcaption", { class: "hint" }, kRanges[range]));
}

function figures(statistics: Statistics): HTMLElement {
  const pairs: [string, string][] = [
    ["min", formatElement(statistics.min)], ["max", formatElement(statistics.max)], ["mean", formatElement(statistics.mean)], ["std", formatElement(statistics.deviation)],
    ["NaN", formatCount(statistics.nan)], ["infinite", formatCount(statistics.infinite)],
  ];
  const shown = pairs.filter(([name, value]) => !((name === "NaN" || name === "infinite") && value === "0"));
  return el("dl", { class: "figures" }, ...shown.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function histogram({ histogram: counts, min, max, count }: Statistics): HTMLElement | null {
  if (count < 16 || !(max > min)) return null;
  const most = Math.max(...counts);
  const [width, height] = [counts.length * 8, 60];
  const bars = counts.map((n, i) => svg("rect", { x: i * 8, width: 7, y: height - (n / most) * height, height: (n / most) * height }));
  return el("figure", { class: "histogram" },
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Histogram of ${formatCount(count)} values`, preserveAspectRatio: "none" }, ...bars) as unknown as HTMLElement,
    el("figcaption", { class: "row hint" }, el("span", {}, formatElement(min)), el("span", {}, formatElement(max))));
}

const kRows = 8;
const kColumns = 8;

/** The first values of the last two dimensions. */
function values(tensor: Tensor): HTMLElement {
  const width = tensor.dims[tensor.dims.length - 1] ?? 1;
  const height = tensor.dims.length > 1 ? tensor.dims[tensor.dims.length - 2]! : 1;
  const [rows, columns] = [Math.min(height, kRows), Math.min(width, kColumns)];
  const cell = (row: number, column: number): string => {
    const value = tensor.data[row * width + column];
    return value === undefined ? "" : formatElement(typeof value === "bigint" ? value : elementAt(tensor, row * width + column));
  };
  const more = tensor.data.length > rows * columns ? `First ${rows} × ${columns} values` : "Values";
  return el("details", {}, el("summary", {}, more),
    table("Values", ["", ...Array.from({ length: columns }, (_, c) => String(c))],
      Array.from({ length: rows }, (_, r) => [String(r), ...Array.from({ length: columns }, (_, c) => cell(r, c))]), Array.from({ length: columns + 1 }, (_, c) => c)));
}

// The order of vertices within their layers: few crossings. SPDX-License-Identifier: BSD-3-Clause

import type { Layered } from "./graph_layers.ts";

const kSweeps = 8;

/** The layers, each from left to right. */
export function orderLayers(graph: Layered): number[][] {
  let layers = graph.layers.map((layer) => [...layer]);
  const position = new Int32Array(graph.layer.length);
  const number = (layer: readonly number[]): void => layer.forEach((vertex, i) => (position[vertex] = i));
  layers.forEach(number);
  let best = layers.map((layer) => [...layer]);
  let least = countCrossings(graph, layers, position);
  for (let sweep = 0; sweep < kSweeps && least > 0; sweep++) {
    const down = sweep % 2 === 0;
    const neighbours = down ? graph.above : graph.below;
    for (let i = 0; i < layers.length; i++) {
      const at = down ? i : layers.length - 1 - i;
      layers[at] = sortByNeighbours(layers[at]!, neighbours, position);
      number(layers[at]!);
    }
    const crossings = countCrossings(graph, layers, position);
    if (crossings < least) {
      least = crossings;
      best = layers.map((layer) => [...layer]);
    }
  }
  return best;
}

function sortByNeighbours(layer: readonly number[], neighbours: Layered["above"], position: Int32Array): number[] {
  const wish = layer.map((vertex, i) => {
    const near = neighbours[vertex]!;
    let sum = 0;
    for (const other of near) sum += position[other]!;
    return { vertex, at: near.length > 0 ? sum / near.length : i };
  });
  return wish.sort((a, b) => a.at - b.at).map((w) => w.vertex);
}

/** Pairs of links that cross, over all layers, by a tree of prefix sums. */
export function countCrossings(graph: Layered, layers: readonly (readonly number[])[], position: Int32Array): number {
  let crossings = 0;
  for (let l = 0; l + 1 < layers.length; l++) {
    const width = layers[l + 1]!.length;
    const tree = new Int32Array(width + 1);
    let seen = 0;
    for (const upper of layers[l]!) {
      const ends = graph.below[upper]!.map((lower) => position[lower]!);
      for (const end of ends) crossings += seen - sumTo(tree, end + 1);
      for (const end of ends) add(tree, end + 1);
      seen += ends.length;
    }
  }
  return crossings;
}

function sumTo(tree: Int32Array, index: number): number {
  let sum = 0;
  for (let i = index; i > 0; i -= i & -i) sum += tree[i]!;
  return sum;
}

function add(tree: Int32Array, index: number): void {
  for (let i = index; i < tree.length; i += i & -i) tree[i]!++;
}

// Where the nodes and edges of a graph are drawn. SPDX-License-Identifier: BSD-3-Clause

import { assignLayers, type Edge, type Layered } from "./graph_layers.ts";
import { orderLayers } from "./graph_order.ts";
import { placeVertices } from "./graph_place.ts";

export const kNodeHeight = 40;
const kLayerGap = 36;
const kNodeGap = 18;
const kBendWidth = 4;

export interface Layout {
  readonly graph: Layered;
  /** By vertex: its middle. */
  readonly x: Float64Array;
  readonly y: Float64Array;
  /** By vertex; bends are narrow. */
  readonly width: Float64Array;
  readonly bounds: { readonly left: number; readonly top: number; readonly right: number; readonly bottom: number };
}

/** Lays a graph out from top to bottom: 2,000 nodes take some tens of milliseconds. */
export function layoutGraph(widths: readonly number[], edges: readonly Edge[]): Layout {
  const graph = assignLayers(widths.length, edges);
  const count = graph.layer.length;
  const width = Float64Array.from({ length: count }, (_, vertex) => widths[vertex] ?? kBendWidth);
  const x = new Float64Array(count);
  let right = 0;
  for (const layers of parts(graph, orderLayers(graph))) {
    placeVertices(graph, layers, width, kNodeGap, x);
    const vertices = layers.flat();
    const left = vertices.reduce((least, vertex) => Math.min(least, x[vertex]! - width[vertex]! / 2), Infinity);
    for (const vertex of vertices) x[vertex]! += right - left;
    right = vertices.reduce((most, vertex) => Math.max(most, x[vertex]! + width[vertex]! / 2), right) + 2 * kNodeGap;
  }
  const y = Float64Array.from(graph.layer, (layer) => layer * (kNodeHeight + kLayerGap));
  const bounds = count === 0 ? { left: 0, top: 0, right: 0, bottom: 0 } : { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (let vertex = 0; vertex < count; vertex++) {
    const half = width[vertex]! / 2;
    bounds.left = Math.min(bounds.left, x[vertex]! - half);
    bounds.right = Math.max(bounds.right, x[vertex]! + half);
    bounds.top = Math.min(bounds.top, y[vertex]! - kNodeHeight / 2);
    bounds.bottom = Math.max(bounds.bottom, y[vertex]! + kNodeHeight / 2);
  }
  return { graph, x, y, width, bounds };
}

/** The layers of each connected part, the largest part first: they are drawn side by side. */
function parts(graph: Layered, layers: readonly (readonly number[])[]): number[][][] {
  const part = new Int32Array(graph.layer.length).fill(-1);
  const found: { size: number; layers: number[][] }[] = [];
  for (let start = 0; start < part.length; start++) {
    if (part[start]! >= 0) continue;
    const stack = [start];
    part[start] = found.length;
    let size = 0;
    for (let vertex = stack.pop(); vertex !== undefined; vertex = stack.pop()) {
      size++;
      for (const next of [...graph.above[vertex]!, ...graph.below[vertex]!]) {
        if (part[next]! >= 0) continue;
        part[next] = found.length;
        stack.push(next);
      }
    }
    found.push({ size, layers: [] });
  }
  for (const layer of layers) {
    for (const [i, vertices] of groupBy(layer, (vertex) => part[vertex]!)) found[i]!.layers.push(vertices);
  }
  return found.sort((a, b) => b.size - a.size).map((each) => each.layers);
}

function groupBy(items: readonly number[], key: (item: number) => number): Map<number, number[]> {
  const groups = new Map<number, number[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

/** The links that the edges of a node take, into it and out of it. */
export function linksOf(layout: Layout, node: number): Set<number> {
  const { graph } = layout;
  const found = new Set<number>();
  const enters = new Map<number, number>();
  graph.links.forEach(([upper, lower], i) => {
    if (graph.owner[upper] === node) found.add(i);
    if (lower >= graph.nodeCount) enters.set(lower, i);
    if (lower === node) found.add(i);
  });
  // Up from the node along bends, to where each edge begins.
  for (const start of graph.above[node]!) {
    let vertex = start;
    while (vertex >= graph.nodeCount) {
      const link = enters.get(vertex)!;
      found.add(link);
      vertex = graph.links[link]![0];
    }
  }
  return found;
}

/** The node under a point, or -1. */
export function nodeAt(layout: Layout, x: number, y: number): number {
  for (let node = 0; node < layout.graph.nodeCount; node++) {
    if (Math.abs(layout.y[node]! - y) <= kNodeHeight / 2 && Math.abs(layout.x[node]! - x) <= layout.width[node]! / 2) return node;
  }
  return -1;
}

// Where vertices stand within their layers: in straight lines where possible, in order, without overlap. SPDX-License-Identifier: BSD-3-Clause
// The method of Brandes and Köpf: vertices are joined with their middle neighbours into vertical lines, which are packed to one side; this is
// done from above and from below, to the left and to the right, and the four are averaged, so that no side is favoured.

import type { Layered } from "./graph_layers.ts";

/** One connected part, with its vertices numbered from 0. */
interface Part {
  readonly layers: readonly (readonly number[])[];
  readonly above: readonly (readonly number[])[];
  readonly below: readonly (readonly number[])[];
  readonly isBend: readonly boolean[];
  readonly width: readonly number[];
}

/** Sets the x of the middle of every vertex in `layers`. `width` is by vertex; `gap` lies between two. */
export function placeVertices(graph: Layered, layers: readonly (readonly number[])[], width: Float64Array, gap: number, x: Float64Array): void {
  const vertices = layers.flat();
  const number = new Map(vertices.map((vertex, i) => [vertex, i]));
  const numbers = (list: readonly number[]): number[] => list.map((vertex) => number.get(vertex)!);
  const part: Part = {
    layers: layers.map(numbers),
    above: vertices.map((vertex) => numbers(graph.above[vertex]!)),
    below: vertices.map((vertex) => numbers(graph.below[vertex]!)),
    isBend: vertices.map((vertex) => vertex >= graph.nodeCount),
    width: vertices.map((vertex) => width[vertex]!),
  };
  const crossing = findCrossing(part);
  const placed = [true, false].flatMap((down) => {
    const near = candidates(part, down);
    return [true, false].map((left) => placeOneWay(part, near, crossing, gap, down, left));
  });
  average(placed).forEach((at, i) => (x[vertices[i]!] = at));
}

function positions(layers: readonly (readonly number[])[], count: number): Int32Array {
  const position = new Int32Array(count);
  for (const layer of layers) layer.forEach((vertex, i) => (position[vertex] = i));
  return position;
}

/** Links that cross a piece of a long edge, as upper * count + lower: the long edge is the one that stays straight. */
function findCrossing({ layers, above, isBend, width }: Part): Set<number> {
  const count = width.length;
  const position = positions(layers, count);
  const found = new Set<number>();
  for (let i = 1; i < layers.length; i++) {
    const lower = layers[i]!;
    let [from, start] = [0, 0];
    lower.forEach((vertex, at) => {
      const long = isBend[vertex] ? above[vertex]!.find((upper) => isBend[upper]) : undefined;
      if (long === undefined && at < lower.length - 1) return;
      const to = long === undefined ? layers[i - 1]!.length - 1 : position[long]!;
      for (; start <= at; start++) {
        for (const upper of above[lower[start]!]!) if (position[upper]! < from || position[upper]! > to) found.add(upper * count + lower[start]!);
      }
      from = to;
    });
  }
  return found;
}

/** The x of every vertex, with lines followed from above or from below and packed to the left or, mirrored, to the right. */
function placeOneWay(
  part: Part, near: readonly (readonly number[])[], crossing: ReadonlySet<number>, gap: number, down: boolean, left: boolean,
): Float64Array {
  const count = part.width.length;
  const turned = left ? part.layers : part.layers.map((layer) => [...layer].reverse());
  const layers = down ? turned : [...turned].reverse();
  const position = positions(layers, count);
  const line = Int32Array.from({ length: count }, (_, vertex) => vertex);
  for (const layer of layers) {
    let last = -1;
    for (const vertex of layer) {
      const list = near[vertex]!;
      // The middle one, or of an even number the two in the middle.
      for (let i = 0; i < 2 - (list.length % 2); i++) {
        const other = list[left ? ((list.length - 1) >> 1) + i : (list.length >> 1) - i];
        if (other === undefined) break;
        const link = down ? other * count + vertex : vertex * count + other;
        if (position[other]! <= last || crossing.has(link)) continue;
        line[vertex] = line[other]!;
        last = position[other]!;
        break;
      }
    }
  }
  const x = pack(layers, line, part.width, gap);
  return left ? x : x.map((at) => -at);
}

/** By vertex, the neighbours that it may form a line with, from left to right. Nodes go with nodes before bends: chains run straight past long edges. */
function candidates({ layers, above, below, isBend }: Part, down: boolean): number[][] {
  const position = positions(layers, isBend.length);
  const [before, behind] = down ? [above, below] : [below, above];
  const leadsOn = behind.map((list) => list.some((next) => !isBend[next]));
  return before.map((all, vertex) => {
    if (all.length === 1 && !isBend[vertex]) return [all[0]!];
    const nodes = all.filter((other) => !isBend[other]);
    const wanted = isBend[vertex] ? all.filter((other) => isBend[other] || !leadsOn[other]) : nodes.length > 0 ? nodes : [...all];
    return wanted.sort((a, b) => position[a]! - position[b]!);
  });
}

/** Lines as far to the left as their neighbours allow, then back to the right where there is room: what belongs together stays together. */
function pack(layers: readonly (readonly number[])[], line: Int32Array, width: readonly number[], gap: number): Float64Array {
  const count = width.length;
  const after: { to: number; distance: number }[][] = Array.from({ length: count }, () => []);
  const waits = new Int32Array(count);
  for (const layer of layers) {
    for (let i = 1; i < layer.length; i++) {
      const [a, b] = [layer[i - 1]!, layer[i]!];
      after[line[a]!]!.push({ to: line[b]!, distance: (width[a]! + width[b]!) / 2 + gap });
      waits[line[b]!]!++;
    }
  }
  const order: number[] = [];
  for (let vertex = 0; vertex < count; vertex++) if (line[vertex] === vertex && waits[vertex] === 0) order.push(vertex);
  const at = new Float64Array(count);
  for (let read = 0; read < order.length; read++) {
    const here = order[read]!;
    for (const { to, distance } of after[here]!) {
      at[to] = Math.max(at[to]!, at[here]! + distance);
      if (--waits[to]! === 0) order.push(to);
    }
  }
  for (const here of order.reverse()) {
    const room = after[here]!.reduce((least, { to, distance }) => Math.min(least, at[to]! - distance), Infinity);
    if (room < Infinity) at[here] = Math.max(at[here]!, room);
  }
  return Float64Array.from(line, (head) => at[head]!);
}

/** Between the middle two of the four for each vertex, once they are moved over the narrowest of them. */
function average(placed: readonly Float64Array[]): Float64Array {
  const bounds = placed.map((x) => x.reduce(([least, most], at) => [Math.min(least, at), Math.max(most, at)] as [number, number], [Infinity, -Infinity] as [number, number]));
  const narrowest = bounds.reduce((best, [least, most], i) => (most - least < bounds[best]![1] - bounds[best]![0] ? i : best), 0);
  // Those that were packed to the left share their left edge, the others their right one.
  const shift = bounds.map(([least, most], i) => (i % 2 === 0 ? bounds[narrowest]![0] - least : bounds[narrowest]![1] - most));
  return Float64Array.from(placed[0]!, (_, vertex) => {
    const sorted = placed.map((x, i) => x[vertex]! + shift[i]!).sort((a, b) => a - b);
    return (sorted[1]! + sorted[2]!) / 2;
  });
}

// Nodes in layers, so that every edge points down. SPDX-License-Identifier: BSD-3-Clause

/** A graph whose edges join neighbouring layers: the nodes first, then bends, which stand for an edge in the layers it passes. */
export interface Layered {
  readonly nodeCount: number;
  /** By vertex. */
  readonly layer: Int32Array;
  /** By vertex: the node whose outgoing edges pass here, or the node itself. */
  readonly owner: Int32Array;
  readonly layers: readonly (readonly number[])[];
  /** Pairs of vertices, the upper one first. */
  readonly links: readonly (readonly [number, number])[];
  readonly above: readonly (readonly number[])[];
  readonly below: readonly (readonly number[])[];
}

export type Edge = readonly [number, number];

export function assignLayers(nodeCount: number, edges: readonly Edge[]): Layered {
  const sound = withoutCycles(nodeCount, edges);
  const layer = longestPaths(nodeCount, sound);
  return addBends(nodeCount, sound.edges, layer);
}

interface Sound {
  readonly order: readonly number[];
  readonly edges: readonly Edge[];
  readonly into: readonly (readonly number[])[];
  readonly out: readonly (readonly number[])[];
}

/** A program's graph has no cycles; a damaged one must not hang the page. */
function withoutCycles(nodeCount: number, edges: readonly Edge[]): Sound {
  const into: number[][] = Array.from({ length: nodeCount }, () => []);
  const out: number[][] = Array.from({ length: nodeCount }, () => []);
  const seen = new Set<number>();
  for (const [from, to] of edges) {
    const key = from * nodeCount + to;
    if (from === to || !(from >= 0 && from < nodeCount && to >= 0 && to < nodeCount) || seen.has(key)) continue;
    seen.add(key);
    out[from]!.push(to);
    into[to]!.push(from);
  }
  const waits = Int32Array.from(into, (list) => list.length);
  const order: number[] = [];
  const placed = new Uint8Array(nodeCount);
  const ready: number[] = [];
  const place = (node: number): void => {
    placed[node] = 1;
    ready.push(node);
  };
  for (let n = 0; n < nodeCount; n++) if (waits[n] === 0) place(n);
  for (let read = 0, first = 0; order.length < nodeCount; ) {
    if (read === ready.length) {
      // Only cycles are left: the first node of one goes on without what it waits for.
      while (placed[first]) first++;
      place(first);
    }
    const node = ready[read++]!;
    order.push(node);
    for (const next of out[node]!) if (--waits[next]! === 0 && !placed[next]) place(next);
  }
  const rank = new Int32Array(nodeCount);
  order.forEach((node, i) => (rank[node] = i));
  const forward = (list: number[][], up: boolean): number[][] =>
    list.map((others, node) => others.filter((other) => (up ? rank[other]! < rank[node]! : rank[other]! > rank[node]!)));
  const kept = forward(out, false);
  return { order, into: forward(into, true), out: kept, edges: kept.flatMap((list, from) => list.map((to): Edge => [from, to])) };
}

function longestPaths(nodeCount: number, { order, into, out }: Sound): Int32Array {
  const layer = new Int32Array(nodeCount);
  for (const node of order) for (const before of into[node]!) layer[node] = Math.max(layer[node]!, layer[before]! + 1);
  // Inputs, and what is made of them alone, stand right above what reads them first.
  const loose = new Uint8Array(nodeCount);
  for (const node of order) loose[node] = Number(into[node]!.every((before) => loose[before]! && out[before]!.length === 1));
  for (let i = order.length - 1; i >= 0; i--) {
    const node = order[i]!;
    const readers = out[node]!;
    if (!loose[node] || readers.length === 0) continue;
    layer[node] = readers.reduce((least, reader) => Math.min(least, layer[reader]!), Infinity) - 1;
  }
  return layer;
}

/** An edge over several layers gets a bend in each; the edges of one node share theirs, so a mask read by every block costs one line. */
function addBends(nodeCount: number, edges: readonly Edge[], nodeLayer: Int32Array): Layered {
  const layer = Array.from(nodeLayer);
  const owner = Array.from({ length: nodeCount }, (_, n) => n);
  const links: [number, number][] = [];
  const trunks = new Map<number, number[]>();
  for (const [from, to] of edges) {
    let trunk = trunks.get(from);
    if (!trunk) trunks.set(from, (trunk = [from]));
    for (let l = layer[from]! + trunk.length; l < layer[to]!; l++) {
      const bend = layer.length;
      layer.push(l);
      owner.push(from);
      links.push([trunk[trunk.length - 1]!, bend]);
      trunk.push(bend);
    }
    links.push([trunk[layer[to]! - 1 - layer[from]!]!, to]);
  }
  const count = layer.length;
  const above: number[][] = Array.from({ length: count }, () => []);
  const below: number[][] = Array.from({ length: count }, () => []);
  for (const [upper, lower] of links) {
    below[upper]!.push(lower);
    above[lower]!.push(upper);
  }
  const layers: number[][] = Array.from({ length: layer.reduce((most, l) => Math.max(most, l + 1), 0) }, () => []);
  layer.forEach((l, vertex) => layers[l]!.push(vertex));
  return { nodeCount, layer: Int32Array.from(layer), owner: Int32Array.from(owner), layers, links, above, below };
}

// The layout of graphs. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { test } from "node:test";
import { importTs } from "./support/import_ts.mjs";

const { layoutGraph, linksOf, nodeAt, kNodeHeight } = await importTs("page/src/inspect/graph_layout.ts");

/** A decoder-like graph: blocks of a chain with two residual edges each, and a mask that every block reads. */
function decoder(blocks, length) {
  const edges = [];
  let last = 1;
  let next = 2;
  for (let b = 0; b < blocks; b++) {
    const entry = last;
    for (let i = 0; i < length; i++) {
      edges.push([last, next]);
      if (i === 3) edges.push([0, next]);
      if (i === length - 1) edges.push([entry, next]);
      last = next++;
    }
  }
  return { count: next, edges };
}

function check(layout, widths, edges) {
  const { x, y } = layout;
  for (const [from, to] of edges) assert.ok(y[from] < y[to], `edge ${from} -> ${to} points down`);
  const byLayer = Map.groupBy ? Map.groupBy(widths.keys(), (n) => y[n]) : widths.reduce((m, _, n) => m.set(y[n], [...(m.get(y[n]) ?? []), n]), new Map());
  for (const nodes of byLayer.values()) {
    const sorted = [...nodes].sort((a, b) => x[a] - x[b]);
    sorted.slice(1).forEach((node, i) => {
      const before = sorted[i];
      assert.ok(x[node] - widths[node] / 2 > x[before] + widths[before] / 2, `nodes ${before} and ${node} do not overlap`);
    });
  }
}

test("edges point down and nodes do not overlap", () => {
  const { count, edges } = decoder(4, 9);
  const widths = Array.from({ length: count }, (_, n) => 60 + (n % 5) * 20);
  check(layoutGraph(widths, edges), widths, edges);
});

test("a chain is a straight line", () => {
  const layout = layoutGraph([100, 100, 100, 100], [[0, 1], [1, 2], [2, 3]]);
  assert.equal(new Set(layout.x).size, 1);
});

test("the chain of a decoder runs down within the width of a node, past its residual edges", () => {
  const { count, edges } = decoder(30, 12);
  const layout = layoutGraph(Array.from({ length: count }, (_, n) => 60 + (n % 5) * 20), edges);
  const chain = [...layout.x].slice(1, count);
  assert.ok(Math.max(...chain) - Math.min(...chain) < 100, `the chain spreads over ${Math.max(...chain) - Math.min(...chain)}`);
  assert.ok(layout.bounds.right - layout.bounds.left < 500, `${layout.bounds.right - layout.bounds.left} wide`);
});

test("two branches do not cross", () => {
  const layout = layoutGraph([80, 80, 80, 80, 80, 80], [[0, 2], [0, 1], [1, 4], [2, 3], [3, 5], [4, 5]]);
  assert.equal(Math.sign(layout.x[1] - layout.x[2]), Math.sign(layout.x[4] - layout.x[3]));
});

test("an input stands right above what reads it", () => {
  const layout = layoutGraph([80, 80, 80, 80, 80], [[0, 1], [1, 2], [2, 3], [4, 3]]);
  assert.equal(layout.y[4], layout.y[2]);
});

test("the edges of a node are found across bends", () => {
  const layout = layoutGraph([80, 80, 80, 80], [[0, 1], [1, 2], [2, 3], [0, 3]]);
  const ends = [...linksOf(layout, 3)].map((i) => layout.graph.links[i]);
  assert.ok(ends.some(([upper]) => upper === 0), "the long edge is followed to its beginning");
  assert.ok(ends.some(([upper, lower]) => upper === 2 && lower === 3));
  assert.ok(!ends.some(([upper, lower]) => upper === 1 && lower === 2));
});

test("a point finds its node", () => {
  const layout = layoutGraph([80, 80], [[0, 1]]);
  assert.equal(nodeAt(layout, layout.x[1] + 39, layout.y[1] - kNodeHeight / 2 + 1), 1);
  assert.equal(nodeAt(layout, layout.x[1] + 41, layout.y[1]), -1);
});

test("parts that are not connected stand side by side", () => {
  const layout = layoutGraph([80, 80, 80, 80, 80], [[0, 3], [3, 4], [1, 2]]);
  const left = (nodes) => Math.min(...nodes.map((n) => layout.x[n] - 40));
  const right = (nodes) => Math.max(...nodes.map((n) => layout.x[n] + 40));
  assert.ok(right([0, 3, 4]) < left([1, 2]));
  assert.ok(left([1, 2]) - right([0, 3, 4]) < 100);
});

test("cycles, loops, duplicates and edges to nowhere are survived", () => {
  const layout = layoutGraph([80, 80, 80], [[0, 1], [1, 2], [2, 0], [1, 1], [0, 1], [0, 99], [-1, 2], [NaN, 1]]);
  assert.ok([...layout.x, ...layout.y].every(Number.isFinite));
  assert.equal(layoutGraph([], []).bounds.right, 0);
});

test("2,000 nodes take less than a second", (t) => {
  const { count, edges } = decoder(60, 33);
  const widths = new Array(count).fill(120);
  layoutGraph(widths, edges);
  // Of this process: other tests run beside it.
  const start = process.cpuUsage();
  const layout = layoutGraph(widths, edges);
  const took = process.cpuUsage(start).user / 1000;
  t.diagnostic(`${count} nodes, ${layout.x.length} vertices: ${took.toFixed(0)} ms`);
  assert.ok(took < 1000, `${took} ms`);
  check(layout, widths, edges);
});

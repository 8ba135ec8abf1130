// The graph on a canvas: drag or arrow keys move, wheel, pinch or + and − zoom, a click tells of a node. SPDX-License-Identifier: BSD-3-Clause
// A canvas, because 2,000 nodes with their edges as elements would take seconds to lay out and megabytes to keep.

import type { Graph } from "../../../src/types.ts";
import { el } from "../dom.ts";
import { plural } from "../format.ts";
import { announce } from "../shell/announcer.ts";
import { kNodeHeight, type Layout, layoutGraph, linksOf, nodeAt } from "./graph_layout.ts";
import { shortName } from "./operator_name.ts";

const kMinScale = 0.005;
const kMaxScale = 3;

export class GraphView {
  private readonly canvas: HTMLCanvasElement;
  readonly element: HTMLElement;
  private readonly layout: Layout;
  private readonly labels: readonly string[];
  private scale = 1;
  /** The point of the graph in the canvas's middle. */
  private center = { x: 0, y: 0 };
  private selected = -1;
  private selectedLinks = new Set<number>();
  private frame = 0;
  private fitted = false;
  private readonly theme = new MutationObserver(() => this.redraw());
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private moved = 0;

  /** `onSelect` gets the position of a node, or -1. */
  constructor(private readonly graph: Graph, name: string, private readonly onSelect: (node: number) => void) {
    this.labels = graph.nodes.map((node) => shortName(node.name));
    this.layout = layoutGraph(graph.nodes.map((node, i) => Math.min(240, Math.max(70, 20 + 7.2 * Math.max(this.labels[i]!.length, node.shape.length * 0.85)))), graph.edges);
    this.canvas = el("canvas", {
      tabindex: 0, role: "application", "aria-roledescription": "graph",
      "aria-label": `Graph of ${name}: ${plural(graph.nodes.length, "node")}, ${plural(graph.edges.length, "edge")}. Arrow keys move, plus and minus zoom, 0 shows all, N and P go from node to node. The table of nodes below says the same.`,
    });
    const zoomBy = (factor: number) => () => this.zoom(factor);
    this.element = el("div", { class: "graph" }, this.canvas,
      el("div", { class: "zoom", role: "group", "aria-label": "Zoom" },
        el("button", { type: "button", "aria-label": "Zoom in", onclick: zoomBy(1.4) }, "+"),
        el("button", { type: "button", "aria-label": "Zoom out", onclick: zoomBy(1 / 1.4) }, "−"),
        el("button", { type: "button", "aria-label": "Show all", onclick: () => this.fit() }, "Fit")));
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    this.followResolution();
    this.theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  /** A window that moves to another screen keeps its size, but not its pixels. */
  private followResolution(): void {
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener("change", () => {
      this.resize();
      if (this.canvas.isConnected) this.followResolution();
    }, { once: true });
  }

  select(node: number, reveal = true): void {
    this.selected = node;
    this.selectedLinks = node < 0 ? new Set() : linksOf(this.layout, node);
    if (node >= 0 && reveal) {
      this.center = { x: this.layout.x[node]!, y: this.layout.y[node]! };
      this.scale = Math.max(this.scale, 0.7);
    }
    this.redraw();
    this.onSelect(node);
  }

  fit(): void {
    const { left, top, right, bottom } = this.layout.bounds;
    const wide = this.canvas.clientWidth / (right - left + 60);
    const high = this.canvas.clientHeight / (bottom - top + 60);
    this.scale = Math.min(1.2, Math.max(kMinScale, Math.min(wide, high)));
    this.center = { x: (left + right) / 2, y: (top + bottom) / 2 };
    this.redraw();
  }

  /** Long graphs begin at their top, at a size that can be read. */
  private begin(): void {
    this.fit();
    if (this.scale >= 0.45) return;
    const { left, top, right } = this.layout.bounds;
    this.scale = Math.min(0.8, Math.max(0.45, this.canvas.clientWidth / (right - left + 60)));
    const sorted = [...this.layout.x.slice(0, this.graph.nodes.length)].sort((a, b) => a - b);
    const middle = this.scale * (right - left) < this.canvas.clientWidth ? (left + right) / 2 : sorted[sorted.length >> 1]!;
    this.center = { x: middle, y: top + this.canvas.clientHeight / 2 / this.scale - 20 };
    this.redraw();
  }

  private zoom(factor: number, at = { x: this.canvas.clientWidth / 2, y: this.canvas.clientHeight / 2 }): void {
    const before = this.toGraph(at);
    this.scale = Math.min(kMaxScale, Math.max(kMinScale, this.scale * factor));
    const after = this.toGraph(at);
    this.center.x += before.x - after.x;
    this.center.y += before.y - after.y;
    this.redraw();
  }

  private pan(x: number, y: number): void {
    this.center.x -= x / this.scale;
    this.center.y -= y / this.scale;
    this.redraw();
  }

  private toGraph(point: { x: number; y: number }): { x: number; y: number } {
    return {
      x: (point.x - this.canvas.clientWidth / 2) / this.scale + this.center.x,
      y: (point.y - this.canvas.clientHeight / 2) / this.scale + this.center.y,
    };
  }

  private listen(): void {
    const { canvas } = this;
    const local = (event: MouseEvent): { x: number; y: number } => ({ x: event.offsetX, y: event.offsetY });
    canvas.addEventListener("wheel", (event) => {
      // Without a key the page scrolls on: the graph must not catch it. Trackpads send a pinch as ctrl + wheel.
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0025)), local(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, local(event));
      this.moved = 0;
    });
    canvas.addEventListener("pointermove", (event) => this.drag(event.pointerId, local(event)));
    canvas.addEventListener("pointerup", (event) => {
      this.pointers.delete(event.pointerId);
      if (this.moved > 4 || event.button !== 0) return;
      const point = this.toGraph(local(event));
      this.select(nodeAt(this.layout, point.x, point.y), false);
    });
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  private drag(id: number, to: { x: number; y: number }): void {
    const from = this.pointers.get(id);
    if (!from) return;
    const others = [...this.pointers].filter(([other]) => other !== id).map(([, point]) => point);
    this.pointers.set(id, to);
    this.moved += Math.hypot(to.x - from.x, to.y - from.y);
    const other = others[0];
    if (!other) return this.pan(to.x - from.x, to.y - from.y);
    const before = Math.hypot(from.x - other.x, from.y - other.y);
    const after = Math.hypot(to.x - other.x, to.y - other.y);
    this.zoom(after / Math.max(1, before), { x: (to.x + other.x) / 2, y: (to.y + other.y) / 2 });
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.pan(step, 0), ArrowRight: () => this.pan(-step, 0), ArrowUp: () => this.pan(0, step), ArrowDown: () => this.pan(0, -step),
      "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), "0": () => this.fit(),
      n: () => this.stepTo(1), p: () => this.stepTo(-1), Escape: () => this.select(-1),
    };
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private stepTo(by: number): void {
    const count = this.graph.nodes.length;
    if (count === 0) return;
    const node = this.selected < 0 ? (by > 0 ? 0 : count - 1) : (this.selected + by + count) % count;
    this.select(node);
    const { name, place, shape } = this.graph.nodes[node]!;
    announce(`${node + 1} of ${count}: ${name}, ${place}, ${shape}`);
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    if (!this.canvas.isConnected) this.theme.disconnect(); // another graph has taken its place; the page would keep this one
    if (clientWidth === 0) return;
    this.canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(clientHeight * devicePixelRatio);
    if (!this.fitted) {
      this.fitted = true;
      this.begin();
    }
    this.draw();
  }

  private redraw(): void {
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    const context = this.canvas.getContext("2d");
    if (!context || this.canvas.width === 0) return;
    const style = getComputedStyle(this.canvas);
    const color = (name: string): string => style.getPropertyValue(`--${name}`).trim();
    const ratio = devicePixelRatio;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.setTransform(
      this.scale * ratio, 0, 0, this.scale * ratio,
      this.canvas.width / 2 - this.center.x * this.scale * ratio, this.canvas.height / 2 - this.center.y * this.scale * ratio);
    this.drawLinks(context, color);
    this.drawNodes(context, color);
  }

  private drawLinks(context: CanvasRenderingContext2D, color: (name: string) => string): void {
    const { x, y, graph } = this.layout;
    const top = this.toGraph({ x: 0, y: 0 });
    const end = this.toGraph({ x: this.canvas.clientWidth, y: this.canvas.clientHeight });
    const half = kNodeHeight / 2;
    const path = (wanted: boolean): void => {
      context.beginPath();
      graph.links.forEach(([a, b], i) => {
        if (this.selectedLinks.has(i) !== wanted) return;
        if (y[b]! < top.y - half || y[a]! > end.y + half || Math.max(x[a]!, x[b]!) < top.x || Math.min(x[a]!, x[b]!) > end.x) return;
        const from = a < graph.nodeCount ? y[a]! + half : y[a]!;
        const to = b < graph.nodeCount ? y[b]! - half : y[b]!;
        const bend = (to - from) / 2;
        context.moveTo(x[a]!, from);
        context.bezierCurveTo(x[a]!, from + bend, x[b]!, to - bend, x[b]!, to);
      });
      context.stroke();
    };
    context.lineWidth = Math.max(1, 0.6 / this.scale);
    context.strokeStyle = color("line-strong");
    path(false);
    context.lineWidth = Math.max(2, 1.5 / this.scale);
    context.strokeStyle = color("accent");
    path(true);
  }

  private drawNodes(context: CanvasRenderingContext2D, color: (name: string) => string): void {
    const { x, y, width } = this.layout;
    const top = this.toGraph({ x: 0, y: 0 });
    const end = this.toGraph({ x: this.canvas.clientWidth, y: this.canvas.clientHeight });
    const text = this.scale > 0.3;
    const fonts = getComputedStyle(this.canvas).fontFamily;
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.graph.nodes.forEach((node, i) => {
      const [w, h] = [width[i]!, kNodeHeight];
      const [left, up] = [x[i]! - w / 2, y[i]! - h / 2];
      if (left > end.x || left + w < top.x || up > end.y || up + h < top.y) return;
      context.beginPath();
      context.roundRect(left, up, w, h, node.place === "input" || node.place === "output" || node.place === "constant" ? h / 2 : 6);
      context.fillStyle = color(`place-${node.place}${this.scale < 0.2 ? "-edge" : ""}`);
      context.fill();
      context.lineWidth = i === this.selected ? 3 : 1;
      context.strokeStyle = i === this.selected ? color("accent") : color(`place-${node.place}-edge`);
      context.stroke();
      if (!text) return;
      context.fillStyle = color("text");
      context.font = `600 12px ${fonts}`;
      context.fillText(this.labels[i]!, x[i]!, node.shape === "" ? y[i]! : y[i]! - 7, w - 10);
      context.fillStyle = color("muted");
      context.font = `11px ${fonts}`;
      context.fillText(node.shape, x[i]!, y[i]! + 9, w - 10);
    });
  }
}

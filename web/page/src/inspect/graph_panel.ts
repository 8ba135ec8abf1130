// The graph with a search, the details of a node, and the same as a table. SPDX-License-Identifier: BSD-3-Clause

import type { Graph, MethodReport } from "../../../src/types.ts";
import { el } from "../dom.ts";
import { plural } from "../format.ts";
import { GraphView } from "./graph_view.ts";
import { table } from "./table.ts";

type Place = Graph["nodes"][number]["place"];
export const kPlaces: Readonly<Record<Place, string>> = {
  gpu: "GPU", cpu: "CPU", free: "no work", unsupported: "not supported", input: "input", output: "output", constant: "constant",
};

export class GraphPanel {
  private readonly graph: Graph;
  private view!: GraphView;
  /** By position in the view: the position in the graph. */
  private shown: number[] = [];
  private readonly holder = el("div", {});
  private readonly constants = el("input", { type: "checkbox", id: "graph-constants" });
  private readonly details = el("div", { class: "node-details" });
  private readonly into: number[][];
  private readonly out: number[][];
  readonly element: HTMLElement;

  constructor(private readonly method: MethodReport) {
    this.graph = method.graph;
    const { nodes, edges } = this.graph;
    this.into = nodes.map(() => []);
    this.out = nodes.map(() => []);
    for (const [from, to] of edges) {
      this.out[from]?.push(to);
      this.into[to]?.push(from);
    }
    this.constants.addEventListener("change", () => this.build());
    const used = (Object.keys(kPlaces) as Place[]).filter((place) => nodes.some((node) => node.place === place));
    this.element = el("section", { class: "graph-panel" },
      el("header", { class: "row" },
        el("h4", {}, "Graph ", el("small", {}, plural(nodes.length, "node"))),
        el("p", { class: "legend" }, ...used.map((place) => el("span", { class: `place ${place}` }, kPlaces[place]))),
        used.includes("constant") && el("label", { class: "check" }, this.constants, " Constants"),
        this.search()),
      this.holder,
      this.details,
      el("details", {}, el("summary", {}, "Nodes as a table"), this.lazyTable()));
    this.build();
  }

  /** Constants outnumber operators and hide how they follow each other: they are drawn when asked for. */
  private build(): void {
    const { nodes, edges } = this.graph;
    this.shown = [...nodes.keys()].filter((i) => this.constants.checked || nodes[i]!.place !== "constant");
    const place = new Map(this.shown.map((node, i) => [node, i]));
    const kept = edges.flatMap(([from, to]): [number, number][] => (place.has(from) && place.has(to) ? [[place.get(from)!, place.get(to)!]] : []));
    this.view = new GraphView({ nodes: this.shown.map((i) => nodes[i]!), edges: kept }, this.method.name, (i) => this.show(this.shown[i] ?? -1));
    this.holder.replaceChildren(this.view.element);
    this.show(-1);
  }

  private select(node: number): void {
    if (!this.shown.includes(node)) {
      this.constants.checked = true;
      this.build();
    }
    this.view.select(this.shown.indexOf(node));
  }

  private search(): HTMLElement {
    const field = el("input", { type: "search", placeholder: "Find a node", "aria-label": "Find a node; Enter goes to the next one" });
    let last = -1;
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || field.value.trim() === "") return;
      const text = field.value.trim().toLowerCase();
      const count = this.graph.nodes.length;
      for (let i = 1; i <= count; i++) {
        const at = (last + i + count) % count;
        if (!this.graph.nodes[at]!.name.toLowerCase().includes(text)) continue;
        last = at;
        return this.select(at);
      }
      this.details.replaceChildren(el("p", { role: "status" }, `No node has '${field.value}' in its name.`));
    });
    return field;
  }

  private show(node: number): void {
    const found = this.graph.nodes[node];
    if (!found) {
      return this.details.replaceChildren(el("p", { class: "hint" }, "Click a node for its details. Drag to move; pinch to zoom, or click the graph and use the wheel or + and −."));
    }
    this.details.replaceChildren(
      el("p", {}, el("strong", {}, found.name), " ", el("span", { class: `place ${found.place}` }, kPlaces[found.place]), " ", el("code", {}, found.shape)),
      this.neighbours("From", this.into[node]!),
      this.neighbours("To", this.out[node]!));
  }

  private neighbours(label: string, nodes: readonly number[]): HTMLElement | string {
    if (nodes.length === 0) return "";
    const shown = nodes.slice(0, 12);
    return el("p", { class: "neighbours" }, `${label} `,
      ...shown.map((node) => el("button", { type: "button", class: "chip", onclick: () => this.select(node) }, `${this.graph.nodes[node]!.name} ${this.graph.nodes[node]!.shape}`)),
      nodes.length > shown.length ? ` and ${nodes.length - shown.length} more` : "");
  }

  /** The text alternative; made when it is opened. */
  private lazyTable(): HTMLElement {
    const holder = el("div", {});
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      const names = (nodes: readonly number[]): string => nodes.slice(0, 6).map((n) => `${this.graph.nodes[n]!.name} (${n + 1})`).join(", ") + (nodes.length > 6 ? ", …" : "");
      holder.replaceChildren(table("Nodes", ["Node", "Where", "Shape", "From", "To"],
        this.graph.nodes.map((node, i) => [`${i + 1} ${node.name}`, kPlaces[node.place], node.shape, names(this.into[i]!), names(this.out[i]!)]), [], (row) => this.select(row)));
    });
    observer.observe(holder);
    holder.append(el("p", {}, "…"));
    return holder;
  }
}

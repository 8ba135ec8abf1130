// Markdown in the document, while it is being written. SPDX-License-Identifier: BSD-3-Clause

import { copyButton, el } from "../dom.ts";
import { parseBlocks, type SourceBlock } from "./blocks.ts";
import { parseInline } from "./inline.ts";
import type { Block, Inline } from "./syntax.ts";

/** Shows a text that grows: a block whose source is as before keeps its elements, so nothing flickers and selections stay. */
export class MarkdownView {
  private shown: { source: string; block: Block; node: HTMLElement }[] = [];

  constructor(readonly element: HTMLElement) {}

  /** Gives the blocks; while the text grows, all but the last one are finished. */
  update(text: string): readonly SourceBlock[] {
    const blocks = parseBlocks(text);
    blocks.forEach((next, i) => {
      const old = this.shown[i];
      if (old?.source === next.source && old.block.type === next.block.type) return;
      if (old && next.block.type === "code" && updateCode(old.node, old.block, next.block)) {
        this.shown[i] = { ...next, node: old.node };
        return;
      }
      const node = renderBlock(next.block);
      if (old) old.node.replaceWith(node);
      else this.element.append(node);
      this.shown[i] = { ...next, node };
    });
    for (const extra of this.shown.splice(blocks.length)) extra.node.remove();
    return blocks;
  }
}

/** Long code grows by what is new, so that writing it takes linear time. */
function updateCode(node: HTMLElement, old: Block, next: Block & { type: "code" }): boolean {
  if (old.type !== "code" || old.language !== next.language || !next.text.startsWith(old.text)) return false;
  const code = node.querySelector("code")!;
  const last = code.lastChild;
  if (last instanceof Text && last.length < 4096) last.appendData(next.text.slice(old.text.length));
  else code.append(next.text.slice(old.text.length));
  return true;
}

export function renderMarkdown(text: string): HTMLElement {
  const element = el("div", { class: "markdown" });
  new MarkdownView(element).update(text);
  return element;
}

function renderBlock(block: Block): HTMLElement {
  switch (block.type) {
    case "paragraph":
      return el("p", {}, ...renderInline(parseInline(block.text)));
    case "heading":
      // The page's own headings are h1 and h2.
      return el(`h${Math.min(block.level + 2, 6)}` as "h3", {}, ...renderInline(parseInline(block.text)));
    case "code":
      return renderCode(block.language, block.text);
    case "quote":
      return el("blockquote", {}, ...block.blocks.map(renderBlock));
    case "rule":
      return el("hr");
    case "list":
      return renderList(block);
    case "table":
      return renderTable(block);
  }
}

function renderCode(language: string, text: string): HTMLElement {
  const code = el("code", {}, text);
  return el("figure", { class: "code" },
    el("figcaption", {}, el("span", {}, language || "text"), copyButton(() => code.textContent ?? "")),
    // A block that scrolls sideways must be reachable by keyboard.
    el("pre", { tabindex: 0, role: "region", "aria-label": `Code${language ? `, ${language}` : ""}` }, code));
}

function renderList(block: Block & { type: "list" }): HTMLElement {
  const items = block.items.map((item) => {
    const box = item.checked === null ? null : el("input", { type: "checkbox", disabled: true, checked: item.checked, "aria-label": item.checked ? "done" : "to do" });
    const body = item.blocks.flatMap((b): Node[] =>
      block.tight && b.type === "paragraph" ? renderInline(parseInline(b.text)) : [renderBlock(b)]);
    return el("li", { class: box && "task" }, box, ...body);
  });
  return block.start === null ? el("ul", {}, ...items) : el("ol", { start: block.start }, ...items);
}

function renderTable(block: Block & { type: "table" }): HTMLElement {
  const row = (cells: readonly string[], tag: "th" | "td"): HTMLElement =>
    el("tr", {}, ...cells.map((cell, i) =>
      el(tag, { class: block.align[i] && `align-${block.align[i]}`, scope: tag === "th" && "col" }, ...renderInline(parseInline(cell)))));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table" },
    el("table", {}, el("thead", {}, row(block.head, "th")), el("tbody", {}, ...block.rows.map((cells) => row(cells, "td")))));
}

function renderInline(inlines: readonly Inline[]): Node[] {
  return inlines.map((inline): Node => {
    switch (inline.type) {
      case "text":
        return document.createTextNode(inline.text);
      case "code":
        return el("code", {}, inline.text);
      case "break":
        return el("br");
      case "link":
        return el("a", { href: inline.href, rel: "noopener noreferrer nofollow", target: "_blank" }, ...renderInline(inline.children));
      default:
        return el(inline.type, {}, ...renderInline(inline.children));
    }
  });
}

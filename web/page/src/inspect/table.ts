// Tables that stay fast when they are long. SPDX-License-Identifier: BSD-3-Clause

import { el } from "../dom.ts";
import { formatCount } from "../format.ts";

const kPage = 200;

/** `numeric`: columns that are set to the right. Rows after the first 200 come by a button. */
export function table(
  name: string, head: readonly string[], rows: readonly (readonly (string | Node)[])[], numeric: readonly number[] = [], onRow?: (row: number) => void,
): HTMLElement {
  const side = (column: number): string => (numeric.includes(column) ? "align-right" : "");
  const body = el("tbody");
  let shown = 0;
  const more = el("button", { type: "button" });
  const extend = (): void => {
    const next = rows.slice(shown, shown + kPage);
    body.append(...next.map((row, i) => line(row, shown + i)));
    shown += next.length;
    more.hidden = shown >= rows.length;
    more.textContent = `Show ${formatCount(Math.min(kPage, rows.length - shown))} more of ${formatCount(rows.length - shown)}`;
  };
  const line = (row: readonly (string | Node)[], at: number): HTMLElement =>
    el("tr", {}, ...row.map((cell, column) => {
      const content = onRow && column === 0 && typeof cell === "string" ? el("button", { type: "button", class: "link", onclick: () => onRow(at) }, cell) : cell;
      return el(column === 0 ? "th" : "td", { class: side(column), scope: column === 0 && "row" }, content);
    }));
  more.addEventListener("click", extend);
  extend();
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name },
    el("table", {}, el("caption", { class: "unseen" }, name), el("thead", {}, el("tr", {}, ...head.map((text, column) => el("th", { scope: "col", class: side(column) }, text)))), body),
    more);
}

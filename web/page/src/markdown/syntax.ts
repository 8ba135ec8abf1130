// What Markdown becomes: a tree without a single piece of HTML. SPDX-License-Identifier: BSD-3-Clause

export type Inline =
  | { readonly type: "text" | "code"; readonly text: string }
  | { readonly type: "break" }
  | { readonly type: "em" | "strong" | "del"; readonly children: readonly Inline[] }
  /** `href` has passed `safeHref`. */
  | { readonly type: "link"; readonly href: string; readonly children: readonly Inline[] };

export type Align = "left" | "center" | "right" | "";

/** Text of paragraphs, headings and cells is left for `parseInline`, so that only what has changed is looked at again. */
export type Block =
  | { readonly type: "paragraph"; readonly text: string }
  | { readonly type: "heading"; readonly level: number; readonly text: string }
  | { readonly type: "code"; readonly language: string; readonly text: string }
  | { readonly type: "quote"; readonly blocks: readonly Block[] }
  /** `start` is that of an ordered list. `tight`: no blank lines between items. */
  | { readonly type: "list"; readonly start: number | null; readonly tight: boolean; readonly items: readonly ListItem[] }
  | { readonly type: "table"; readonly align: readonly Align[]; readonly head: readonly string[]; readonly rows: readonly (readonly string[])[] }
  | { readonly type: "rule" };

export interface ListItem {
  /** Of a task list; `null` elsewhere. */
  readonly checked: boolean | null;
  readonly blocks: readonly Block[];
}

/** The address of a link if it may be followed: http, https or mailto, and nothing that only looks like them. */
export function safeHref(address: string): string | null {
  // The URL parser drops tabs, newlines and leading control characters as a browser does: what passes here is what is followed.
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  return url.protocol === "https:" || url.protocol === "http:" || url.protocol === "mailto:" ? url.href : null;
}

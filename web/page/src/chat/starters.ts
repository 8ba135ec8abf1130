// What an empty conversation shows: questions to begin with. SPDX-License-Identifier: BSD-3-Clause

import { el } from "../dom.ts";

const kQuestions = ["Why is the sky blue?", "Write a haiku about rain.", "What is recursion? Give a short example in Python."];

/** `ask` sends a question as if it had been typed. */
export function starters(ask: (question: string) => void): HTMLElement {
  return el("section", { class: "starters", "aria-label": "Questions to start with" },
    el("p", { class: "hint" }, "The model is ready. Ask it something, or start with one of these:"),
    el("div", { class: "actions" }, ...kQuestions.map((question) => el("button", { type: "button", onclick: () => ask(question) }, question))));
}

// Light or dark, before anything is drawn: a script of its own that the page waits for. SPDX-License-Identifier: BSD-3-Clause

export type Theme = "system" | "light" | "dark";

export function storedTheme(): Theme {
  try {
    const value = localStorage.getItem("pteryx.theme");
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

export function applyTheme(theme: Theme = storedTheme()): void {
  const dark = theme === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

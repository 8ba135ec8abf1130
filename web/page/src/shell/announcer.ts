// What a screen reader says about things that happen by themselves. SPDX-License-Identifier: BSD-3-Clause

import { byId, el } from "../dom.ts";

/** Adds a line to the polite live region; old lines leave it, so that it does not grow. */
export function announce(text: string): void {
  const region = byId("announcer");
  region.append(el("p", {}, text));
  while (region.childElementCount > 8) region.firstElementChild!.remove();
}

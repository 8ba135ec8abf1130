// Workers where the package lies on another origin than the page, such as a CDN. SPDX-License-Identifier: BSD-3-Clause

/**
 * Starts a script that lies beside this file on another origin than the page; `undefined` where both are the page's own. Browsers take no worker
 * of another origin, but one of the page's own that imports it.
 */
export function startForeignWorker(script: string, name: string): Worker | undefined {
  const address = new URL(import.meta.url);
  if (!/^https?:$/.test(address.protocol) || address.origin === globalThis.origin) return undefined;
  // Not in one expression, because bundlers would look for it.
  address.pathname = address.pathname.replace(/[^/]*$/, script);
  const code = new Blob([`import ${JSON.stringify(address.href)};`], { type: "text/javascript" });
  const url = URL.createObjectURL(code);
  const worker = new Worker(url, { type: "module", name });
  // Once it runs, or cannot, its script is not needed any more.
  for (const event of ["message", "error"]) worker.addEventListener(event, () => URL.revokeObjectURL(url));
  return worker;
}

// Runs functions of a test in a page or in a worker of it. SPDX-License-Identifier: BSD-3-Clause

const RUNNER = `
  onmessage = async ({ data: { text, argument, modules } }) => {
    try {
      const loaded = await Promise.all(modules.map((path) => import(path)));
      postMessage({ value: await (0, eval)("(" + text + ")")(Object.assign({}, ...loaded), argument) });
    } catch (error) {
      postMessage({ failure: { name: error.name, code: error.code, message: error.message, stack: error.stack } });
    }
  };`;

/** Puts the pieces that `inPage` needs on a server: an empty page at `/` and the worker's script. */
export function serveRunner(server) {
  server.file("/", { body: Buffer.from("<!doctype html><link rel='icon' href='data:,'><title>test</title>"), type: "text/html" });
  server.file("/runner.js", { body: Buffer.from(RUNNER), type: "text/javascript" });
}

/**
 * Calls `task(exports, argument)` with the exports of modules of the page's server. The task is sent as text: it sees nothing of the test's scope.
 * @param {import("playwright-core").Page} page at `/` of a server with `serveRunner`
 * @param {{ thread: "page" | "worker", modules: string[] }} where `thread`: the page's own, or a dedicated worker that ends afterwards
 * @returns {Promise<any>} what the task gives; rejects with its error, `name` and `code` included
 */
export async function inPage(page, where, task, argument) {
  const order = { text: String(task), argument, modules: where.modules };
  const { value, failure } = await page.evaluate(async ([thread, sent]) => {
    if (thread === "worker") {
      const worker = new Worker("/runner.js", { type: "module" });
      try {
        return await new Promise((resolve, reject) => {
          worker.onmessage = ({ data }) => resolve(data);
          worker.onerror = (event) => reject(new Error(event.message ?? "the worker could not be started"));
          worker.postMessage(sent);
        });
      } finally {
        worker.terminate();
      }
    }
    try {
      const loaded = await Promise.all(sent.modules.map((path) => import(path)));
      return { value: await (0, eval)(`(${sent.text})`)(Object.assign({}, ...loaded), sent.argument) };
    } catch (error) {
      return { failure: { name: error.name, code: error.code, message: error.message, stack: error.stack } };
    }
  }, [where.thread, order]);
  if (failure) throw Object.assign(new Error(failure.message), failure);
  return value;
}

// Waiting that can be given up. SPDX-License-Identifier: BSD-3-Clause

/** What `done` gives; an `AbortError` as soon as `signal` is aborted, whatever becomes of it. */
export function unlessAborted<Value>(done: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(new DOMException("the load was cancelled", "AbortError"));
    if (signal.aborted) leave();
    signal.addEventListener("abort", leave);
    done.then(resolve, reject);
  });
}

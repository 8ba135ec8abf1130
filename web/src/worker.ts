// The worker that the package starts: the service behind messages. SPDX-License-Identifier: BSD-3-Clause
import type { FromWorker, ToWorker } from "./connection.js";
import { Service } from "./engine/service.js";
import { asPteryxError } from "./platform.js";

const service = new Service();
const calls = new Map<number, AbortController>();
const send = (message: FromWorker, transfer: readonly ArrayBuffer[] = []): void => (postMessage as (message: FromWorker, transfer: readonly ArrayBuffer[]) => void)(message, transfer);

/** Of the outputs of a run, which are nobody else's: they move to the caller, and are not copied. */
function buffersOf(value: unknown): ArrayBuffer[] {
  const parts = typeof value === "object" && value !== null ? Object.values(value) : [];
  return [...new Set(parts.flatMap((part) => (ArrayBuffer.isView(part?.data) ? [part.data.buffer as ArrayBuffer] : [])))];
}

addEventListener("message", (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  if ("cancel" in message) return void calls.get(message.cancel)?.abort();
  const { id, name, args } = message;
  const controller = new AbortController();
  calls.set(id, controller);
  service
    .call(name, args as never, controller, (happened) => send({ id, event: happened }))
    .then((value) => send({ id, value }, buffersOf(value)))
    .catch((error: unknown) => {
      const { code, message: text } = asPteryxError(error);
      send({ id, error: { code, message: text } });
    })
    .finally(() => calls.delete(id));
});

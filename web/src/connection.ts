// Calls of the service, in a worker or on the same thread. SPDX-License-Identifier: BSD-3-Clause
import { missingPart, PteryxError, type ErrorCode } from "./errors.js";
import { startForeignWorker } from "./foreign_worker.js";
import { Service, notBegun, type CallName, type Emit, type ServiceCalls, type ServiceEvent } from "./engine/service.js";
import { asPteryxError } from "./platform.js";

/** To the worker. */
export type ToWorker = { readonly id: number; readonly name: CallName; readonly args: readonly unknown[] } | { readonly cancel: number };
/** And back. */
export type FromWorker =
  | { readonly id: number; readonly event: ServiceEvent }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: { readonly code: ErrorCode; readonly message: string } };

type Value<Name extends CallName> = ReturnType<ServiceCalls[Name]>;

export interface Connection {
  call<Name extends CallName>(name: Name, args: Parameters<ServiceCalls[Name]>, signal?: AbortSignal, emit?: Emit): Promise<Value<Name>>;
  close(): void;
}

/** The service on the caller's own thread. */
class DirectConnection implements Connection {
  readonly #service = new Service();
  async call<Name extends CallName>(name: Name, args: Parameters<ServiceCalls[Name]>, signal?: AbortSignal, emit?: Emit): Promise<Value<Name>> {
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal?.reason);
    if (signal?.aborted === true) abort();
    signal?.addEventListener("abort", abort);
    const thrown: unknown[] = [];
    let over = false; // what is still to be told then, such as of a download that goes on, is not the caller's any more
    try {
      // What the caller's function throws ends the call, and does not reach the module that is in the midst of it.
      const value = await this.#service.call(name, args, controller, (event) => {
        try {
          if (!over && thrown.length === 0) emit?.(event);
        } catch (error) {
          thrown.push(error);
          abort();
        }
      });
      if (thrown.length === 0) return value;
    } catch (error) {
      if (thrown.length === 0) throw asPteryxError(error);
    } finally {
      over = true;
      signal?.removeEventListener("abort", abort);
    }
    throw thrown[0];
  }
  close(): void {
    this.#service.call("dispose", [], new AbortController(), () => undefined).catch(() => undefined);
  }
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly emit: Emit;
  readonly forget: () => void;
}

/** The service in a worker of its own, which ends with it. */
class WorkerConnection implements Connection {
  readonly #pending = new Map<number, Pending>();
  #last = 0;
  #ended: PteryxError | undefined;
  #started = false;

  constructor(readonly worker: Worker) {
    worker.addEventListener("message", (event: MessageEvent<FromWorker>) => this.#receive(event.data));
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      // What a worker throws has a message; a script that is missing or forbidden has none.
      if (event.message) this.#end(new PteryxError("internal", `the worker stopped: ${event.message}`));
      else this.#end(missingPart("the package's worker.js", "cannot be started: it is missing, or the page's security policy (worker-src) forbids it"));
    });
    worker.addEventListener("messageerror", () => this.#end(new PteryxError("internal", "the worker sent what cannot be read")));
  }

  call<Name extends CallName>(name: Name, args: Parameters<ServiceCalls[Name]>, signal?: AbortSignal, emit?: Emit): Promise<Value<Name>> {
    if (signal?.aborted === true) return notBegun(name);
    return new Promise((resolve, reject) => {
      if (this.#ended !== undefined) return reject(this.#ended);
      const id = ++this.#last;
      const cancel = (): void => {
        // A worker that nothing came from may still wait for its script.
        if (this.#started) this.#send({ cancel: id });
        else this.#end(new PteryxError("cancelled", `'${name}' was cancelled`));
      };
      const forget = (): void => signal?.removeEventListener("abort", cancel);
      this.#pending.set(id, { resolve: resolve as (value: unknown) => void, reject, emit: emit ?? (() => undefined), forget });
      try {
        this.#send({ id, name, args });
      } catch (error) {
        this.#pending.delete(id);
        return reject(new PteryxError("invalid-argument", `what was given to '${name}' cannot be sent to a worker: ${String(error)}`, { cause: error }));
      }
      signal?.addEventListener("abort", cancel);
    });
  }
  close(): void {
    this.#end(new PteryxError("invalid-argument", "it was disposed of"));
    this.worker.terminate();
  }

  #send(message: ToWorker): void {
    this.worker.postMessage(message);
  }
  #receive(message: FromWorker): void {
    this.#started = true;
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    const settle = (): void => {
      this.#pending.delete(message.id);
      pending.forget();
    };
    if ("event" in message) {
      try {
        return pending.emit(message.event);
      } catch (error) {
        // The caller's function threw.
        this.#send({ cancel: message.id });
        settle();
        return pending.reject(error);
      }
    }
    settle();
    if ("error" in message) pending.reject(new PteryxError(message.error.code, message.error.message));
    else pending.resolve(message.value);
  }
  #end(error: PteryxError): void {
    this.#ended ??= error;
    for (const pending of this.#pending.values()) {
      pending.forget();
      pending.reject(this.#ended);
    }
    this.#pending.clear();
  }
}

/** Starts the service. Node runs it on the caller's thread: what takes long there is the GPU's work. */
export function connect(worker: boolean): Connection {
  if (!worker || typeof Worker === "undefined") return new DirectConnection();
  try {
    // In one expression, because bundlers look for it.
    return new WorkerConnection(startForeignWorker("worker.js", "pteryx") ?? new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "pteryx" }));
  } catch (error) {
    throw missingPart("the package's worker.js", `cannot be started: ${String(error)}`, error);
  }
}

// What runs where the engine is, in a worker or on the caller's thread: one program or model, and calls of it in turn. SPDX-License-Identifier: BSD-3-Clause
import type { ByteSource } from "../byte_source.js";
import { PteryxError } from "../errors.js";
import { isNode, platformGpu } from "../platform.js";
import { openProgram } from "../convert/gguf.js";
import { openInput } from "../source/open_input.js";
import type { OpenSource } from "../source/source.js";
import type { DeviceInfo, GenerateOptions, GenerateResult, Input, InputValue, LoadOptions, MethodInfo, ModelInfo, Outputs, Piece, ProgramInfo, ProgramReport, Progress } from "../types.js";
import { Engine, type Prompt, type Stopped } from "./engine.js";
import { LoadProgress } from "./load_progress.js";
import type { ModuleAddresses } from "./modules.js";
import { hasSimd } from "./simd.js";

type SentOption = "device" | "precision" | "kv" | "memoryLimit" | "threads" | "cache" | "cacheFolder" | "cacheLimit" | "sha256";
/** Options that can be sent to a worker. */
export type SentLoadOptions = { readonly [Name in SentOption]: LoadOptions[Name] | undefined } & {
  /** Capabilities to leave unused, for tests. */
  readonly disable: string | undefined;
};
export interface LoadCall {
  readonly kind: "program" | "model";
  readonly input: Input;
  readonly data: readonly Input[];
  readonly tokenizer: Input | undefined;
  readonly options: SentLoadOptions;
  /** Of relative addresses: the page's. */
  readonly base: string;
  /** Where the WebAssembly modules are. */
  readonly modules: ModuleAddresses;
}
export interface RunCall {
  readonly method: string;
  readonly inputs: readonly InputValue[] | Readonly<Record<string, InputValue>>;
}
export interface GenerateCall {
  /** Its id; 0: the model's own. */
  readonly sequence: number;
  readonly prompt: Prompt;
  readonly options: Omit<GenerateOptions, "signal" | "onPrompt">;
}

/** What happens while a call is under way. */
export type ServiceEvent =
  | { readonly progress: Progress }
  /** A download begins that the browser is to keep. */
  | { readonly keep: true }
  | { readonly piece: Piece }
  | { readonly prompt: readonly [number, number] };

/** The calls: what each takes and gives. */
export interface ServiceCalls {
  load(call: LoadCall): ProgramInfo | ModelInfo;
  /** Needs no load, and leaves nothing behind. */
  inspect(call: LoadCall): ProgramReport;
  run(call: RunCall): Outputs;
  reset(): void;
  device(): DeviceInfo;
  counters(): Record<string, number>;
  encode(text: string): number[];
  decode(tokens: readonly number[]): string;
  /** `id`: the caller's name for it from now on, above 0. */
  createSequence(id: number): void;
  freeSequence(id: number): void;
  generate(call: GenerateCall): GenerateResult;
  /** For tests: what a driver's reset does. */
  loseDevice(): void;
  dispose(): void;
}
export type CallName = keyof ServiceCalls;
export type Emit = (event: ServiceEvent) => void;

/** Of a text that was stopped before it began. */
const kNoText: GenerateResult = { text: "", reason: "cancelled", promptTokens: 0, cachedTokens: 0, newTokens: 0, promptMs: 0, decodeMs: 0, hostMsPerToken: 0 };

const cancelledCall = (name: CallName): PteryxError => new PteryxError("cancelled", `'${name}' was cancelled`);

/** What becomes of a call that is cancelled before it begins. */
export async function notBegun<Name extends CallName>(name: Name): Promise<ReturnType<ServiceCalls[Name]>> {
  if (name === "generate") return kNoText as ReturnType<ServiceCalls[Name]>;
  throw cancelledCall(name);
}

function closeAll(engine: Engine | undefined, inputs: readonly ByteSource[]): void {
  engine?.close();
  for (const input of inputs) input.close();
}

export class Service {
  #engine: Engine | undefined;
  /** Why there is no engine. */
  #gone: PteryxError | undefined;
  #handle = 0;
  #kind: "program" | "model" = "program";
  #methods: readonly MethodInfo[] = [];
  /** Handles of sequences by the ids that callers know them by, which outlive the device: 0 is the model's own. */
  readonly #sequences = new Map<number, number>();
  #turn: Promise<unknown> = Promise.resolve();
  readonly #calls = new Set<AbortController>();

  /** Runs a call after those before it; one that is aborted while it waits ends at once. `dispose` aborts all others. */
  call<Name extends CallName>(name: Name, args: Parameters<ServiceCalls[Name]>, controller: AbortController, emit: Emit): Promise<ReturnType<ServiceCalls[Name]>> {
    const { signal } = controller;
    if (name === "dispose") for (const other of this.#calls) other.abort();
    this.#calls.add(controller);
    return new Promise((resolve, reject) => {
      const settle = resolve as (value: unknown) => void;
      const stopped: Stopped = () => (signal.aborted ? cancelledCall(name) : undefined);
      const leave = (): void => resolve(notBegun(name));
      if (signal.aborted) leave();
      signal.addEventListener("abort", leave);
      const run = async (): Promise<unknown> => {
        signal.removeEventListener("abort", leave);
        return signal.aborted ? undefined : this.#call(name, args, signal, stopped, emit);
      };
      this.#turn = this.#turn.then(run).then(settle, reject).finally(() => this.#calls.delete(controller));
    });
  }

  async #call(name: CallName, args: readonly unknown[], signal: AbortSignal, stopped: Stopped, emit: Emit): Promise<unknown> {
    switch (name) {
      case "load":
        return this.#load(args[0] as LoadCall, signal, stopped, emit);
      case "inspect":
        return this.#inspect(args[0] as LoadCall, signal, stopped, emit);
      case "run": {
        const { method, inputs } = args[0] as RunCall;
        const known = this.#methods.find((m) => m.name === method);
        if (known === undefined)
          throw new PteryxError("invalid-argument", `the program has no method '${method}': expected ${this.#methods.map((m) => m.name).join(", ")}`);
        return this.#open().run(this.#handle, known, inputs, stopped);
      }
      case "reset":
        return void this.#open().wasm.check("program_reset", this.#handle);
      case "device":
        return this.#open().info();
      case "counters":
        return this.#open().counters();
      case "encode":
        return this.#open().encode(this.#handle, args[0] as string);
      case "decode":
        return this.#open().decode(this.#handle, args[0] as readonly number[]);
      case "createSequence":
        return this.#createSequence(args[0] as number);
      case "freeSequence":
        return this.#freeSequence(args[0] as number);
      case "generate": {
        const { sequence, prompt, options } = args[0] as GenerateCall;
        const engine = this.#open();
        const handle = this.#sequences.get(sequence);
        if (handle === undefined) throw new PteryxError("device-lost", "the sequence was lost with the GPU device and recover() has not restored it; if that failed, call it again");
        return engine.generate(
          handle,
          prompt,
          options,
          signal,
          (piece) => emit({ piece }),
          (read, all) => emit({ prompt: [read, all] }),
        );
      }
      case "loseDevice":
        this.#open().gpu?.device.destroy();
        return undefined;
      case "dispose":
        return this.#dispose(new PteryxError("invalid-argument", "it was disposed of"));
    }
  }

  #open(): Engine {
    if (this.#engine === undefined) throw this.#gone;
    return this.#engine;
  }

  #createSequence(id: number): void {
    const engine = this.#open();
    // It may be there still: the recovery that is to restore it was cancelled before it began.
    if (!this.#sequences.has(id)) this.#sequences.set(id, engine.wasm.check("sequence_create", this.#handle));
  }
  #freeSequence(id: number): void {
    const handle = this.#sequences.get(id);
    if (this.#sequences.delete(id)) this.#open().wasm.call("sequence_free", handle!);
  }

  async #load(call: LoadCall, signal: AbortSignal, stopped: Stopped, emit: Emit): Promise<ProgramInfo | ModelInfo> {
    // What was loaded before, whose device was lost.
    this.#dispose(new PteryxError("device-lost", "the GPU device is lost and the last recover() failed; call it again"));
    const progress = new LoadProgress((p) => emit({ progress: p }));
    return (await this.#loadWith("some", call, signal, stopped, progress, emit)) ?? (await this.#loadWith("all", call, signal, stopped, progress, emit))!;
  }
  /** Nothing where the program needs operators that the module lacks, which it says before any weights are read. */
  async #loadWith(operators: "some" | "all", call: LoadCall, signal: AbortSignal, stopped: Stopped, progress: LoadProgress, emit: Emit): Promise<ProgramInfo | ModelInfo | undefined> {
    const opened: ByteSource[] = [];
    let engine: Engine | undefined;
    try {
      const { source, data, tokenizer, notes } = await this.#openInputs(call, signal, progress, emit, opened);
      engine = await this.#openEngine(call, operators === "all", signal);
      engine.fallback.push(...notes);
      const { precision = call.kind === "model" ? "f16" : "f32", kv, memoryLimit } = call.options;
      const request = {
        source,
        data,
        tokenizer,
        options: { precision, kv, memoryLimit },
        onProgress: (what: string, done: number, total: number): boolean => {
          progress.module(what, done, total);
          return !signal.aborted;
        },
      };
      const loaded = call.kind === "program" ? await engine.loadProgram(source.name, request, stopped) : await engine.loadModel(source.name, request, stopped);
      if (call.kind === "model") this.#sequences.set(0, engine.wasm.check("sequence_create", loaded.handle));
      if (call.options.sha256 !== undefined) await source.complete();
      progress.finish();
      const late = stopped();
      if (late !== undefined) throw late;
      this.#engine = engine;
      this.#handle = loaded.handle;
      this.#kind = call.kind;
      this.#methods = "methods" in loaded.info ? loaded.info.methods : [];
      if (call.options.sha256 === undefined) {
        // For the next visit, unless this one ends before.
        source.complete().catch((error: PteryxError) => {
          if (error.code !== "cancelled") console.warn(String(error));
        });
      }
      return loaded.info;
    } catch (error) {
      closeAll(engine, opened);
      const lacks = engine?.module.hasAll === false && error instanceof PteryxError && error.code === "unsupported" && hasSimd();
      if (lacks) return undefined;
      throw error;
    }
  }

  /** Puts all that it opens into `opened`, also where it fails. */
  async #openInputs(call: LoadCall, signal: AbortSignal, progress: LoadProgress, emit: Emit, opened: ByteSource[], tablesOnly = false) {
    const { sha256, cacheFolder, cacheLimit, cache = !isNode } = call.options;
    const onBytes = (done: number, total: number): void => progress.bytes(done, total);
    const options = { signal, cache, tablesOnly, baseUrl: call.base, onBytes, onKeep: () => emit({ keep: true }) };
    const add = <Source extends ByteSource>(source: Source): Source => (opened.push(source), source);
    const source = add(await openProgram(call.input, {
      ...options,
      sha256,
      cacheFolder,
      cacheLimit,
      converter: new URL(call.modules.converter),
      onConvert: (done, total) => progress.converted(done, total),
    }));
    const data: OpenSource[] = [];
    for (const file of call.data) data.push(add(await openInput(file, options)));
    const tokenizer = call.tokenizer === undefined ? undefined : add(await openInput(call.tokenizer, options));
    return { source, data, tokenizer, notes: [source, ...data, ...(tokenizer ? [tokenizer] : [])].flatMap(({ notes }) => notes) };
  }
  #openEngine({ options, modules }: LoadCall, all: boolean, signal: AbortSignal): Promise<Engine> {
    return Engine.open({ ...options, gpu: platformGpu, modules, signal, all });
  }

  async #inspect(call: LoadCall, signal: AbortSignal, stopped: Stopped, emit: Emit): Promise<ProgramReport> {
    const opened: ByteSource[] = [];
    let engine: Engine | undefined;
    try {
      const inputs = await this.#openInputs(call, signal, new LoadProgress((p) => emit({ progress: p })), emit, opened, true);
      engine = await this.#openEngine(call, true, signal); // it has what inspects, and tells what would run on the CPU
      const report = await engine.inspect(inputs.source, inputs.data, call.options.precision, stopped);
      engine.fallback.push(...inputs.notes);
      return { ...report, device: engine.info() };
    } finally {
      closeAll(engine, opened);
    }
  }

  #dispose(why: PteryxError): void {
    this.#gone = why;
    const engine = this.#engine;
    this.#engine = undefined;
    const sequences = [...this.#sequences.values()];
    this.#sequences.clear();
    try {
      for (const sequence of sequences) engine?.wasm.call("sequence_free", sequence);
      engine?.wasm.call(`${this.#kind}_free`, this.#handle);
    } catch {
      // The module stopped for good.
    }
    engine?.close();
  }
}

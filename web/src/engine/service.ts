// What runs where the engine is, in a worker or on the caller's thread: one program or model, and calls of it in turn. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { isNode, platformGpu } from "../platform.js";
import { openProgram } from "../convert/gguf.js";
import { openInput } from "../source/open_input.js";
import type { DeviceInfo, GenerateOptions, GenerateResult, Input, InputValue, LoadOptions, MethodInfo, ModelInfo, Outputs, Piece, ProgramInfo, ProgramReport, Progress } from "../types.js";
import { Engine, type Prompt, type Stopped } from "./engine.js";
import { LoadProgress } from "./load_progress.js";
import type { ModuleAddresses } from "./modules.js";
import { hasSimd } from "./simd.js";

/** Options that can be sent to a worker. */
export type SentLoadOptions = Pick<LoadOptions, "device" | "precision" | "kv" | "memoryLimit" | "threads" | "cache" | "cacheFolder" | "sha256"> & { readonly disable?: string };
export interface LoadCall {
  readonly kind: "program" | "model";
  readonly input: Input;
  readonly data: readonly Input[];
  readonly tokenizer?: Input;
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
  /** 0: the model's own sequence. */
  readonly sequence: number;
  readonly prompt: Prompt;
  readonly options: Omit<GenerateOptions, "signal" | "onPrompt">;
}

/** What happens while a call is under way. */
export type ServiceEvent =
  | { readonly progress: Progress }
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
  createSequence(): number;
  freeSequence(sequence: number): void;
  generate(call: GenerateCall): GenerateResult;
  /** For tests: what a driver's reset does. */
  loseDevice(): void;
  dispose(): void;
}
export type CallName = keyof ServiceCalls;
export type Emit = (event: ServiceEvent) => void;

export class Service {
  #engine: Engine | undefined;
  #handle = 0;
  #kind: "program" | "model" = "program";
  #methods: readonly MethodInfo[] = [];
  readonly #sequences = new Set<number>();
  #own = 0; // the model's own sequence
  #turn: Promise<unknown> = Promise.resolve();

  /** Runs a call after those before it. */
  call<Name extends CallName>(name: Name, args: Parameters<ServiceCalls[Name]>, signal: AbortSignal, emit: Emit): Promise<ReturnType<ServiceCalls[Name]>> {
    const stopped: Stopped = () => (signal.aborted ? new PteryxError("cancelled", `'${name}' was cancelled`) : undefined);
    const run = async (): Promise<unknown> => {
      const error = stopped();
      if (error !== undefined && name !== "generate" && name !== "dispose") throw error;
      return this.#call(name, args, signal, stopped, emit);
    };
    const result = this.#turn.then(run, run);
    this.#turn = result.catch(() => undefined);
    return result as Promise<ReturnType<ServiceCalls[Name]>>;
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
      case "createSequence": {
        const sequence = this.#open().wasm.check("sequence_create", this.#handle);
        this.#sequences.add(sequence);
        return sequence;
      }
      case "freeSequence":
        if (this.#sequences.delete(args[0] as number)) this.#open().wasm.call("sequence_free", args[0] as number);
        return undefined;
      case "generate": {
        const { sequence, prompt, options } = args[0] as GenerateCall;
        return this.#open().generate(
          sequence === 0 ? this.#own : sequence,
          prompt,
          options,
          stopped,
          (piece) => emit({ piece }),
          (read, all) => emit({ prompt: [read, all] }),
        );
      }
      case "loseDevice":
        this.#open().gpu?.device.destroy();
        return undefined;
      case "dispose":
        return this.#dispose();
    }
  }

  #open(): Engine {
    if (this.#engine === undefined) throw new PteryxError("invalid-argument", "it was disposed of");
    return this.#engine;
  }

  async #load(call: LoadCall, signal: AbortSignal, stopped: Stopped, emit: Emit): Promise<ProgramInfo | ModelInfo> {
    this.#dispose(); // of a load before, whose device was lost
    const progress = new LoadProgress((p) => emit({ progress: p }));
    return (await this.#loadWith("some", call, signal, stopped, progress)) ?? (await this.#loadWith("all", call, signal, stopped, progress))!;
  }
  /** Nothing where the program needs operators that the module lacks, which it says before any weights are read. */
  async #loadWith(operators: "some" | "all", call: LoadCall, signal: AbortSignal, stopped: Stopped, progress: LoadProgress): Promise<ProgramInfo | ModelInfo | undefined> {
    const { source, data, tokenizer } = await this.#openInputs(call, signal, progress);
    const engine = await this.#openEngine(call, operators === "all");
    engine.fallback.push(...source.notes);
    try {
      const { precision = call.kind === "model" ? "f16" : "f32", kv, memoryLimit } = call.options;
      const request = {
        source,
        data,
        ...(tokenizer === undefined ? {} : { tokenizer }),
        options: { precision, ...(kv === undefined ? {} : { kv }), ...(memoryLimit === undefined ? {} : { memoryLimit }) },
        onProgress: (what: string, done: number, total: number): boolean => {
          progress.module(what, done, total);
          return !signal.aborted;
        },
      };
      const loaded = call.kind === "program" ? await engine.loadProgram(source.name, request, stopped) : await engine.loadModel(source.name, request, stopped);
      if (call.kind === "model") {
        this.#own = engine.wasm.check("sequence_create", loaded.handle);
        this.#sequences.add(this.#own);
      }
      if (call.options.sha256 !== undefined) await source.complete();
      this.#engine = engine;
      this.#handle = loaded.handle;
      this.#kind = call.kind;
      this.#methods = "methods" in loaded.info ? loaded.info.methods : [];
      progress.finish();
      if (call.options.sha256 === undefined) source.complete().catch((error: unknown) => console.warn(String(error))); // for the next visit
      return loaded.info;
    } catch (error) {
      engine.close();
      const lacks = !engine.module.hasAll && error instanceof PteryxError && error.code === "unsupported" && hasSimd();
      if (lacks) return undefined;
      throw error;
    }
  }

  async #openInputs(call: LoadCall, signal: AbortSignal, progress: LoadProgress) {
    const { sha256, cacheFolder, cache = !isNode } = call.options;
    const options = { signal, cache, baseUrl: call.base, onBytes: (done: number, total: number) => progress.bytes(done, total) };
    return {
      source: await openProgram(call.input, {
        ...options,
        ...(sha256 === undefined ? {} : { sha256 }),
        ...(cacheFolder === undefined ? {} : { cacheFolder }),
        converter: new URL(call.modules.converter),
        onConvert: (done, total) => progress.converted(done, total),
      }),
      data: await Promise.all(call.data.map((file) => openInput(file, options))),
      tokenizer: call.tokenizer === undefined ? undefined : await openInput(call.tokenizer, options),
    };
  }
  async #openEngine(call: LoadCall, all: boolean): Promise<Engine> {
    const { device = "auto", disable, threads } = call.options;
    return Engine.open({
      device,
      gpu: await platformGpu(),
      modules: call.modules,
      all,
      ...(threads === undefined ? {} : { threads }),
      ...(disable === undefined ? {} : { disable }),
    });
  }

  async #inspect(call: LoadCall, signal: AbortSignal, stopped: Stopped, emit: Emit): Promise<ProgramReport> {
    const { source, data } = await this.#openInputs(call, signal, new LoadProgress((p) => emit({ progress: p })));
    const engine = await this.#openEngine(call, true); // it has what inspects, and tells what would run on the CPU
    try {
      return await engine.inspect(source, data, call.options.precision, stopped);
    } finally {
      engine.close();
    }
  }

  #dispose(): void {
    const engine = this.#engine;
    this.#engine = undefined;
    if (engine === undefined) return;
    const sequences = [...this.#sequences];
    this.#sequences.clear();
    try {
      for (const sequence of sequences) engine.wasm.call("sequence_free", sequence);
      engine.wasm.call(`${this.#kind}_free`, this.#handle);
      engine.close();
    } catch {
      // The module stopped for good, such as without memory: all that it held goes with it.
      engine.gpu?.device.destroy();
    }
  }
}

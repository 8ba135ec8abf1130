// One program or model on one device: the module and the GPU that it runs on. SPDX-License-Identifier: BSD-3-Clause
import type { ByteSource } from "../byte_source.js";
import { PteryxError } from "../errors.js";
import { throwIfAborted, untilAborted } from "../source/cancel.js";
import type { DeviceInfo, GenerateOptions, GenerateResult, InputValue, LoadOptions, Message, MethodInfo, ModelInfo, Outputs, Piece, ProgramInfo, ProgramReport } from "../types.js";
import { openGpu, type OpenGpu } from "./gpu_device.js";
import { hasSimd, requireSimd } from "./simd.js";
import { openCpuModule, openGpuModule, type ModuleAddresses, type OpenModule } from "./modules.js";
import { Inputs, orderInputs, takeOutputs } from "./tensors.js";
import type { ProgressListener, Wasm } from "./wasm.js";

/** What an engine is made with. */
export interface EngineOptions {
  readonly device: LoadOptions["device"];
  readonly gpu: () => Promise<GPU | undefined>;
  readonly modules: ModuleAddresses;
  readonly signal: AbortSignal;
  /** Of the CPU's kernels; unless told, as many as pay. */
  readonly threads?: number | undefined;
  /** On a GPU: with all operators, and kernels for the CPU. */
  readonly all?: boolean;
  /** Capabilities to leave unused, for tests. */
  readonly disable?: string | undefined;
}

/** What is loaded, from where. */
export interface LoadRequest {
  readonly source: ByteSource;
  readonly data: readonly ByteSource[];
  readonly tokenizer: ByteSource | undefined;
  readonly options: { readonly [Name in "precision" | "kv" | "memoryLimit"]: LoadOptions[Name] | undefined };
  readonly onProgress: ProgressListener;
}
export type Stopped = () => PteryxError | undefined;

/** The prompt of a text. */
export type Prompt = { readonly messages: readonly Message[] } | { readonly text: string } | { readonly ids: readonly number[] };
// What a step of a text waits for wakes it, and so does the signal that ends it; should nothing, it looks for itself after so long.
const kPatienceMs = 1000;

type SamplingOptions = Omit<GenerateOptions, "signal" | "onPrompt">;

interface PieceReport {
  text: string;
  token?: number;
  logProbability?: number;
  read: number;
  prompt: number;
  reason?: string;
  cachedTokens?: number;
  newTokens?: number;
  promptMs?: number;
  decodeMs?: number;
}

/** What is opened, unless the signal says so first: then what comes late is closed. */
async function openUnlessAborted<T>(name: string, signal: AbortSignal, opening: Promise<T>, close: (late: T) => void): Promise<T> {
  try {
    throwIfAborted(name, signal);
    return await Promise.race([opening, untilAborted(name, signal)]);
  } catch (error) {
    opening.then(close).catch(() => undefined);
    throw error;
  }
}

/** The GPU to use; none: the CPU, and `fallback` says why. */
async function chooseGpu(options: EngineOptions, fallback: string[]): Promise<OpenGpu | undefined> {
  if (options.device === "cpu") {
    requireSimd([]);
    return undefined;
  }
  const slower = "The CPU is used, which is slower than a GPU";
  try {
    const opening = options.gpu().then((gpu) => openGpu(gpu, options.disable));
    const gpu = await openUnlessAborted("the GPU", options.signal, opening, (late) => late.device.destroy());
    if (options.device === "gpu" || !gpu.software || !hasSimd()) {
      fallback.push(...gpu.lacks);
      return gpu;
    }
    gpu.device.destroy();
    fallback.push(`${slower}: WebGPU offers a software GPU only (${gpu.name}), which is slower still.`);
  } catch (error) {
    if (options.device === "gpu" || options.signal.aborted || !(error instanceof PteryxError)) throw error;
    requireSimd([`There is no GPU either: ${error.message}.`]);
    fallback.push(`${slower}: ${error.message}.`);
  }
  return undefined;
}

export class Engine {
  #job = 0;

  private constructor(
    readonly module: OpenModule,
    readonly device: number,
    readonly gpu: OpenGpu | undefined,
    /** Sentences on what is used in place of something better. */
    readonly fallback: string[],
  ) {}

  get wasm(): Wasm {
    return this.module.wasm;
  }
  /** Opens the GPU, or the CPU's kernels where there is none and the caller allows it. */
  static async open(options: EngineOptions): Promise<Engine> {
    const fallback: string[] = [];
    const gpu = await chooseGpu(options, fallback);
    const { modules, threads, all = false, signal } = options;
    let module: OpenModule | undefined;
    try {
      const opening = gpu === undefined ? openCpuModule(modules, threads, signal) : openGpuModule(modules, all, signal);
      module = await openUnlessAborted("the package's files", signal, opening, (late) => late.close());
      const { wasm } = module;
      const device = gpu === undefined
        ? wasm.check("device_open_cpu")
        : wasm.checkJson("device_open_gpu", [wasm.gpus.add(gpu.device)], gpu.description);
      return new Engine(module, device, gpu, [...fallback, ...module.notes]);
    } catch (error) {
      module?.close();
      gpu?.device.destroy();
      throw error;
    }
  }

  info(): DeviceInfo {
    const { name, features } = this.gpu ?? { name: "CPU", features: [] };
    const { memoryBytes } = this.counters();
    return { kind: this.gpu ? "gpu" : "cpu", name, features, memoryBytes: memoryBytes!, heapBytes: this.wasm.heapBytes, fallback: this.fallback };
  }
  /** What the device was asked for since it was opened. */
  counters(): Record<string, number> {
    this.wasm.check("device_counters", this.device);
    return this.wasm.json() as Record<string, number>;
  }
  close(): void {
    try {
      this.wasm.call("device_close", this.device);
    } catch {
      // The module stopped for good, such as without memory: all that it held goes with it.
    }
    this.wasm.sources.close();
    this.module.close();
    this.gpu?.device.destroy();
  }

  /** A handle of what is loaded. */
  async #load(kind: "program" | "model", request: LoadRequest, stopped: Stopped): Promise<number> {
    const { wasm } = this;
    const job = ++this.#job;
    wasm.listeners.set(job, request.onProgress);
    const description = {
      ...request.options,
      source: wasm.sources.add(request.source),
      data: request.data.map((source) => wasm.sources.add(source)),
      tokenizer: request.tokenizer && wasm.sources.add(request.tokenizer),
      job,
    };
    let handle = 0;
    try {
      handle = wasm.checkJson(`${kind}_load`, [this.device], description);
      await wasm.finish(`${kind}_advance`, handle, stopped);
      return handle;
    } catch (error) {
      if (handle !== 0) wasm.call(`${kind}_free`, handle);
      throw error;
    } finally {
      wasm.listeners.delete(job);
    }
  }

  async loadProgram(name: string, request: LoadRequest, stopped: Stopped): Promise<{ handle: number; info: ProgramInfo }> {
    const handle = await this.#load("program", request, stopped);
    this.wasm.check("program_describe", handle);
    const { methods } = this.wasm.json() as { methods: MethodInfo[] };
    return { handle, info: { name, methods, threads: this.module.threads, device: this.info() } };
  }
  async run(program: number, method: MethodInfo, values: readonly InputValue[] | Readonly<Record<string, InputValue>>, stopped: Stopped): Promise<Outputs> {
    const { wasm } = this;
    const ordered = orderInputs(method, values);
    const inputs = new Inputs(wasm);
    try {
      ordered.forEach((value, i) => inputs.add(value, method.inputs[i]!, method.name));
      wasm.checkJson("program_start", [program], { method: method.name, inputs: inputs.described });
      await wasm.finish("program_run_advance", program, stopped);
      const outputs = takeOutputs(method, wasm);
      // What the CPU computed last left no time to hear of a cancellation.
      await wasm.host.breathe();
      const late = stopped();
      if (late !== undefined) throw late;
      return outputs;
    } finally {
      wasm.call("program_cancel", program);
      inputs.release();
    }
  }

  async loadModel(name: string, request: LoadRequest, stopped: Stopped): Promise<{ handle: number; info: ModelInfo }> {
    const handle = await this.#load("model", request, stopped);
    this.wasm.check("model_describe", handle);
    const described = this.wasm.json() as Omit<ModelInfo, "name" | "device" | "threads">;
    return { handle, info: { name, ...described, threads: this.module.threads, device: this.info() } };
  }
  encode(model: number, text: string): number[] {
    this.wasm.checkText("model_encode", [model], text);
    return this.wasm.json() as number[];
  }
  decode(model: number, tokens: readonly number[]): string {
    this.wasm.checkJson("model_decode", [model], tokens);
    return this.wasm.text();
  }

  /** What a program holds, from its tables alone. */
  async inspect(source: ByteSource, data: readonly ByteSource[], precision: LoadOptions["precision"], stopped: Stopped): Promise<Omit<ProgramReport, "device">> {
    const { wasm } = this;
    const description = { source: wasm.sources.add(source), data: data.map((file) => wasm.sources.add(file)), precision };
    const handle = wasm.checkJson("inspect_begin", [this.device], description);
    try {
      await wasm.finish("inspect_advance", handle, stopped);
      return wasm.json() as Omit<ProgramReport, "device">;
    } finally {
      wasm.call("inspect_free", handle);
    }
  }

  /** Makes a text, and tells its pieces as they come. */
  async generate(
    sequence: number,
    prompt: Prompt,
    options: SamplingOptions,
    signal: AbortSignal,
    onPiece: (piece: Piece) => void,
    onPrompt: (read: number, prompt: number) => void,
  ): Promise<GenerateResult> {
    const { wasm } = this;
    const wake = (): void => wasm.host.wake();
    signal.addEventListener("abort", wake);
    try {
      wasm.checkJson("generate_begin", [sequence], { ...prompt, options });
      return await this.#writeText(sequence, options.maxTokens !== 0, signal, onPiece, onPrompt);
    } finally {
      signal.removeEventListener("abort", wake);
    }
  }
  async #writeText(
    sequence: number, wanted: boolean, signal: AbortSignal, onPiece: (piece: Piece) => void, onPrompt: (read: number, prompt: number) => void,
  ): Promise<GenerateResult> {
    const { wasm } = this;
    const stopped = (): boolean => signal.aborted;
    let text = "";
    let busyAtFirst: number | undefined;
    const take = (): PieceReport => {
      const report = wasm.json() as PieceReport;
      const { token, logProbability } = report;
      if (token !== undefined) onPiece({ text: report.text, token, ...(logProbability === undefined ? {} : { logProbability }) });
      else if (busyAtFirst === undefined) onPrompt(report.read, report.prompt);
      text += report.text;
      return report;
    };
    for (;;) {
      if (!wanted || !(await wasm.advance("generate_advance", sequence, stopped, kPatienceMs))) wasm.check("generate_cancel", sequence);
      const report = wasm.busy(take);
      if (!wanted) report.reason = "length";
      if (report.token !== undefined) busyAtFirst ??= wasm.busyMs;
      if (report.reason === undefined) {
        await wasm.host.breathe();
        continue;
      }
      const { prompt: promptTokens, cachedTokens = 0, newTokens = 0, promptMs = 0, decodeMs = 0 } = report;
      const reason = report.reason.split(" ")[0] as GenerateResult["reason"]; // it tells "stop text" from "stop id"
      const hostMsPerToken = newTokens > 1 && busyAtFirst !== undefined ? (wasm.busyMs - busyAtFirst) / (newTokens - 1) : 0;
      return { text, reason, promptTokens, cachedTokens, newTokens, promptMs, decodeMs, hostMsPerToken };
    }
  }
}

// Loading programs and models, and what is done with them. SPDX-License-Identifier: BSD-3-Clause
import { connect, type Connection } from "./connection.js";
import type { LoadCall, ServiceEvent } from "./engine/service.js";
import type { Prompt } from "./engine/engine.js";
import type { ModuleAddresses } from "./engine/modules.js";
import { check } from "./engine/options.js";
import { PteryxError } from "./errors.js";
import { baseAddress } from "./platform.js";
import { startGeneration } from "./generation.js";
import { askPersistence } from "./source/cache.js";
import type {
  CallOptions, DeviceInfo, GenerateOptions, Generation, Input, InputValue, InspectOptions, LoadOptions, Message, Model, ModelInfo, ModelOptions, Outputs, Program, ProgramInfo, ProgramReport, Sequence,
} from "./types.js";

/** Beside this file; bundlers look for addresses that are written like this. */
const kModules: ModuleAddresses = {
  gpu: new URL("./pteryx.wasm", import.meta.url).href,
  kernels: new URL("./kernels.bin", import.meta.url).href,
  networkKernels: new URL("./kernels_networks.bin", import.meta.url).href,
  cpu: new URL("./pteryx_cpu.wasm", import.meta.url).href,
  threads: new URL("./pteryx_cpu_threads.wasm", import.meta.url).href,
  converter: new URL("./pteryx_convert.wasm", import.meta.url).href,
};

function loadCall(kind: "program" | "model", input: Input, options: ModelOptions & { readonly disable?: string }): LoadCall {
  const { device, precision, kv, memoryLimit, threads, cache, cacheFolder, cacheLimit, sha256, disable, tokenizer, data = [] } = options;
  // Addresses are objects that workers cannot be sent.
  const sent = <T>(file: T): T | string => (file instanceof URL ? file.href : file);
  return {
    kind,
    input: sent(input),
    data: data.map(sent),
    tokenizer: sent(tokenizer),
    options: { device, precision, kv, memoryLimit, threads, cache, cacheFolder, cacheLimit, sha256, disable },
    base: baseAddress(),
    modules: kModules,
  };
}

function progressTo({ onProgress }: Pick<LoadOptions, "onProgress">): (event: ServiceEvent) => void {
  return (event) => {
    if ("progress" in event) onProgress?.(event.progress);
    if ("keep" in event) void askPersistence(); // which only pages can
  };
}

async function load<Info>(connection: Connection, call: LoadCall, options: LoadOptions): Promise<Info> {
  try {
    return (await connection.call("load", [call], options.signal, progressTo(options))) as Info;
  } catch (error) {
    connection.close();
    throw error;
  }
}

// A call that waits for a GPU that never answers ends with its worker.
const kPatienceMs = 10_000;

/** Frees what a connection holds, and ends it. */
async function end(connection: Connection): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, kPatienceMs)));
  await Promise.race([connection.call("dispose", []).catch(() => undefined), late]);
  clearTimeout(timer);
  connection.close();
}

class LoadedProgram implements Program {
  constructor(
    readonly connection: Connection,
    readonly info: ProgramInfo,
  ) {}

  async run(method: string, inputs: readonly InputValue[] | Readonly<Record<string, InputValue>>, options: CallOptions = {}): Promise<Outputs> {
    check(options, { inputs });
    return this.connection.call("run", [{ method, inputs }], options.signal);
  }
  async reset(options: CallOptions = {}): Promise<void> {
    check(options);
    return this.connection.call("reset", [], options.signal);
  }
  async device(options: CallOptions = {}): Promise<DeviceInfo> {
    check(options);
    return this.connection.call("device", [], options.signal);
  }
  dispose(): Promise<void> {
    return end(this.connection);
  }
}

class LoadedSequence implements Sequence {
  #disposed = false;

  constructor(
    readonly model: LoadedModel,
    /** 0: the model's own. */
    readonly id: number,
  ) {}

  generate(prompt: string | readonly number[], options: GenerateOptions = {}): Generation {
    return this.#start(typeof prompt === "string" ? { text: prompt } : { ids: prompt }, options, { prompt });
  }
  chat(messages: readonly Message[], options: GenerateOptions = {}): Generation {
    return this.#start({ messages }, options, { messages });
  }
  async dispose(): Promise<void> {
    this.#disposed = true;
    this.model.sequences.delete(this);
    await this.model.connection.call("freeSequence", [this.id]).catch(() => undefined);
  }
  #start(prompt: Prompt, options: GenerateOptions, given: Readonly<Record<string, unknown>>): Generation {
    return startGeneration((sent, signal, emit) => {
      if (this.#disposed) throw new PteryxError("invalid-argument", "the sequence was disposed of");
      return this.model.connection.call("generate", [{ sequence: this.id, prompt, options: sent }], signal, emit);
    }, options, given);
  }
}

class LoadedModel implements Model {
  readonly sequences = new Set<LoadedSequence>();
  readonly #own = new LoadedSequence(this, 0);
  #lastId = 0;
  info: ModelInfo;
  #disposed = false;

  constructor(
    readonly connection: Connection,
    readonly call: LoadCall,
    info: ModelInfo,
  ) {
    this.info = info;
  }

  generate(prompt: string | readonly number[], options?: GenerateOptions): Generation {
    return this.#own.generate(prompt, options);
  }
  chat(messages: readonly Message[], options?: GenerateOptions): Generation {
    return this.#own.chat(messages, options);
  }
  async createSequence(options: CallOptions = {}): Promise<Sequence> {
    check(options);
    const sequence = new LoadedSequence(this, ++this.#lastId);
    // At once: a recovery that begins meanwhile restores it, too.
    this.sequences.add(sequence);
    try {
      await this.connection.call("createSequence", [sequence.id], options.signal);
      return sequence;
    } catch (error) {
      void sequence.dispose(); // a recovery may have restored it already
      throw error;
    }
  }
  async encode(text: string, options: CallOptions = {}): Promise<number[]> {
    check(options, { text });
    return this.connection.call("encode", [text], options.signal);
  }
  async decode(tokens: readonly number[], options: CallOptions = {}): Promise<string> {
    check(options, { tokens });
    return this.connection.call("decode", [tokens], options.signal);
  }
  async device(options: CallOptions = {}): Promise<DeviceInfo> {
    check(options);
    return this.connection.call("device", [], options.signal);
  }
  async recover(options: Pick<LoadOptions, "signal" | "onProgress"> = {}): Promise<void> {
    check(options);
    if (this.#disposed) throw new PteryxError("invalid-argument", "the model was disposed of");
    const loading = this.connection.call("load", [this.call], options.signal, progressTo(options));
    // Their caches went with the device: the next text reads its prompt anew. They are asked for at once, so that whatever is called from now on
    // finds them, and what is disposed of meanwhile goes after it has come.
    const restoring = [...this.sequences].map(({ id }) => this.connection.call("createSequence", [id]));
    const [loaded, ...restored] = await Promise.allSettled([loading, ...restoring]);
    for (const result of [loaded, ...restored]) if (result.status === "rejected") throw result.reason;
    this.info = (loaded as PromiseFulfilledResult<ModelInfo>).value;
  }
  dispose(): Promise<void> {
    this.#disposed = true;
    return end(this.connection);
  }
}

/**
 * Loads any `.pte` program.
 *
 * @example
 * const program = await loadProgram("/models/resnet50.pte");
 * const { output0 } = await program.run("forward", [pixels]);
 */
export async function loadProgram(input: Input, options: LoadOptions = {}): Promise<Program> {
  check(options, { input });
  const connection = connect(options.worker ?? true);
  return new LoadedProgram(connection, await load<ProgramInfo>(connection, loadCall("program", input, options), options));
}

/**
 * Loads a language model: a `.pte` program with a KV cache, or a GGUF file, which is converted first and cached for the next load.
 *
 * @example
 * const model = await loadModel("/models/smollm2.pte");
 * for await (const piece of model.chat([{ role: "user", content: "Why is the sky blue?" }])) out.append(piece.text);
 */
export async function loadModel(input: Input, options: ModelOptions = {}): Promise<Model> {
  check(options, { input });
  const connection = connect(options.worker ?? true);
  const call = loadCall("model", input, options);
  return new LoadedModel(connection, call, await load<ModelInfo>(connection, call, options));
}

/** Says what a program holds and how it would run on this device. Reads its tables, not its weights; a GGUF file is converted first. */
export async function inspectProgram(input: Input, options: InspectOptions = {}): Promise<ProgramReport> {
  check(options, { input });
  const connection = connect(options.worker ?? true);
  try {
    return await connection.call("inspect", [loadCall("program", input, options)], options.signal, progressTo(options));
  } finally {
    connection.close();
  }
}

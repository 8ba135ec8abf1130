// What the package's functions take and give. SPDX-License-Identifier: BSD-3-Clause
import type { CacheEntry } from "./source/cache.js";

/**
 * Where a file comes from: a URL, a `Blob` such as a file that was chosen, bytes, or an entry from `cache.list`, such as the conversion of a file
 * that is no longer available. In Node, a string is a path unless it begins with a scheme.
 */
export type Input = string | URL | Blob | ArrayBuffer | Uint8Array | CacheEntry;

/** Progress of a load. */
export interface Progress {
  /** `download`: reading the file from the network or disk; `convert`: converting a GGUF file; `upload`: copying weights to the GPU; `compile`: compiling shaders. */
  readonly phase: "download" | "convert" | "upload" | "compile";
  /** Fraction of the whole load, from 0 to 1; never decreases. */
  readonly fraction: number;
  /** Bytes done in this phase. */
  readonly doneBytes: number;
  /** Total bytes of this phase; 0 if unknown. */
  readonly totalBytes: number;
}

/** Options of `loadProgram` and `loadModel`. */
export interface LoadOptions {
  /** Cancels the load; the promise rejects with the code `cancelled`. */
  readonly signal?: AbortSignal;
  /** Called as the load progresses. */
  readonly onProgress?: (progress: Progress) => void;
  /** `true`, the default: everything runs in a worker; `false`: on the calling thread. */
  readonly worker?: boolean;
  /** `auto`, the default: the GPU, or the CPU if no hardware GPU is available; `info.device.fallback` says why. */
  readonly device?: "auto" | "gpu" | "cpu";
  /** Precision of matrix products: `f32`, or `f16`, which rounds their operands and is faster on most GPUs. Default: `f16` for `loadModel`, `f32` for `loadProgram`, as on the command line. */
  readonly precision?: "f32" | "f16";
  /** Element type of KV caches. Default: f16 at f16 precision, otherwise as in the file. */
  readonly kv?: "f32" | "f16";
  /** External weights (`.ptd`) of a program. */
  readonly data?: readonly Input[];
  /** Caches downloads and conversions for the next visit. Default: `true`. Browsers only. */
  readonly cache?: boolean;
  /** Folder in which conversions of GGUF files are cached; without one, they are temporary files. Node only. */
  readonly cacheFolder?: string;
  /** Bytes that the conversions in `cacheFolder` may take: beyond them, those used longest ago are removed. Default: 32 GiB. */
  readonly cacheLimit?: number;
  /**
   * SHA-256 of the file, in hexadecimal. A mismatch is refused with the code `invalid-program` and nothing is cached. A cached file that already
   * matched is used without contacting the server.
   */
  readonly sha256?: string;
  /** Most bytes of memory to use, on the device that runs the program; one that needs more is refused before anything is allocated. */
  readonly memoryLimit?: number;
  /**
   * CPU threads, at most 64. Default, or 0: an estimate of the physical cores, at most 16. More than one needs Node or a cross-origin isolated page.
   * Results do not depend on the number.
   */
  readonly threads?: number;
}

/** Options of `loadModel`. */
export interface ModelOptions extends LoadOptions {
  /** Tokenizer to use instead of the one in the file. */
  readonly tokenizer?: Input;
}

/** Options of `inspectProgram`. */
export type InspectOptions = Pick<LoadOptions, "signal" | "onProgress" | "worker" | "device" | "precision" | "data" | "cache" | "cacheFolder">;

/** The device that runs a program, and its memory use. */
export interface DeviceInfo {
  /** `gpu`: WebGPU; `cpu`: the CPU's kernels, in WebAssembly. */
  readonly kind: "gpu" | "cpu";
  /** The GPU's name as the browser tells it, or `CPU`. */
  readonly name: string;
  /** WebGPU features in use, such as `shader-f16` and `subgroups`. */
  readonly features: readonly string[];
  /** Bytes of buffers on the device. */
  readonly memoryBytes: number;
  /** Bytes of the WebAssembly heap. */
  readonly heapBytes: number;
  /** Fallbacks and why they happened, one sentence each; empty if there are none. */
  readonly fallback: readonly string[];
}

/** Element types of tensors. */
export type DType = "f32" | "f16" | "bf16" | "f64" | "i64" | "i32" | "i16" | "i8" | "u8" | "u16" | "u32" | "u64" | "bool";
/** Arrays that hold the elements of a tensor. */
export type TypedArray =
  | Float32Array | Float64Array | BigInt64Array | BigUint64Array | Int32Array | Int16Array | Int8Array | Uint8Array | Uint16Array | Uint32Array;

/** A tensor: elements in row-major order. f16 and bf16 are held in a `Uint16Array` as bits, bool in a `Uint8Array`. */
export interface Tensor {
  /** Type of the elements. */
  readonly dtype: DType;
  /** Sizes, the outermost dimension first; none for a scalar. */
  readonly dims: readonly number[];
  /** The elements; as many as the product of `dims`. */
  readonly data: TypedArray;
}
/** An input of a method: a tensor, an array of the input's own type and largest size, numbers that its elements can hold, a number, a boolean, a string, or `null`. */
export type InputValue = Tensor | TypedArray | readonly number[] | number | bigint | boolean | string | null;
/** An output of a method. */
export type OutputValue = Tensor | number | bigint | boolean | string | null;

/** An input or output of a method. */
export interface ValueInfo {
  /** Its name in `Program.run`; `input0`, `output0` and so on if the program does not name it. */
  readonly name: string;
  /** What it is. */
  readonly kind: "tensor" | "int" | "float" | "bool" | "string" | "none";
  /** Type of the elements, of tensors. */
  readonly dtype?: DType;
  /** Sizes, of tensors; upper bounds where `dynamic`. */
  readonly dims?: readonly number[];
  /** Whether a tensor may be smaller than `dims`. */
  readonly dynamic?: boolean;
  /** The only accepted value, for inputs that are not tensors. */
  readonly value?: number | boolean | string | null;
}
/** A method of a program. */
export interface MethodInfo {
  /** The name to pass to `Program.run`; most programs have one method, `forward`. */
  readonly name: string;
  /** What it takes, in order. */
  readonly inputs: readonly ValueInfo[];
  /** What it gives, in order. */
  readonly outputs: readonly ValueInfo[];
}
/** A loaded program and its device. */
export interface ProgramInfo {
  /** The URL or the file's name. */
  readonly name: string;
  /** Its methods, without those that only hold constants. */
  readonly methods: readonly MethodInfo[];
  /** Threads of the CPU's kernels; 1 where a GPU is used. */
  readonly threads: number;
  /** The device right after loading; `Program.device()` returns its current state. */
  readonly device: DeviceInfo;
}

/** Outputs by name (`info.methods[i].outputs[j].name`) and by position. */
export interface Outputs {
  /** By name. */
  readonly [name: string]: OutputValue;
  /** By position, from 0. */
  readonly [position: number]: OutputValue;
}

/** Options of calls of a program or model. Calls run one after the other, so each may have to wait. */
export interface CallOptions {
  /** Cancels the call; the promise rejects with the code `cancelled`. */
  readonly signal?: AbortSignal;
}

/** A loaded program: any `.pte`. */
export interface Program {
  /** Its methods and its device. */
  readonly info: ProgramInfo;
  /** Runs a method with inputs by position or by name. State such as KV caches persists between runs. */
  run(method: string, inputs: readonly InputValue[] | Readonly<Record<string, InputValue>>, options?: CallOptions): Promise<Outputs>;
  /** Resets all state to its initial value. */
  reset(options?: CallOptions): Promise<void>;
  /** The device's current state and memory use. */
  device(options?: CallOptions): Promise<DeviceInfo>;
  /** Stops what runs and frees all its resources. */
  dispose(): Promise<void>;
}

/** One message of a conversation. */
export interface Message {
  /** Who wrote it. */
  readonly role: "system" | "user" | "assistant" | "tool";
  /** Its text. */
  readonly content: string;
  /** Name of the tool, if the model's chat template uses it. */
  readonly name?: string;
}

/** Sampling options. The defaults are those of the command line: greedy, no penalties. */
export interface GenerateOptions {
  /** Maximum number of new tokens. Default: as many as fit in the context. */
  readonly maxTokens?: number;
  /** 0, the default, always picks the most likely token; at most 100. */
  readonly temperature?: number;
  /** Samples from the k most likely tokens. */
  readonly topK?: number;
  /** Samples from the smallest set of tokens with this total probability. */
  readonly topP?: number;
  /** Drops tokens less likely than this fraction of the most likely one. */
  readonly minP?: number;
  /** Penalises tokens that already occurred: divides their logits where positive; from 0.01 to 100, 1 is off. */
  readonly repetitionPenalty?: number;
  /** Subtracted from the logits of tokens that already occurred; from -100 to 100. */
  readonly presencePenalty?: number;
  /** Subtracted from a token's logit once for every earlier occurrence; from -100 to 100. */
  readonly frequencyPenalty?: number;
  /** The same seed, prompt and options give the same text on the same device. */
  readonly seed?: number;
  /** Generation stops before the first of these strings. */
  readonly stop?: readonly string[];
  /** Also returns `logProbability` for each token. */
  readonly logProbabilities?: boolean;
  /** Continues past the model's end-of-text token. */
  readonly ignoreEnd?: boolean;
  /** When the context is full, drops its older half and continues. */
  readonly shift?: boolean;
  /** Stops generation; `result` then has the reason `cancelled`. */
  readonly signal?: AbortSignal;
  /** Called as the prompt is processed. */
  readonly onPrompt?: (readTokens: number, promptTokens: number) => void;
}

/** What one token adds to the text. */
export interface Piece {
  /** May be empty: a character can take several tokens. */
  readonly text: string;
  /** Its id in the vocabulary. */
  readonly token: number;
  /** Natural logarithm of its probability, where `logProbabilities` is set. */
  readonly logProbability?: number;
}

/** Result of a generation. */
export interface GenerateResult {
  /** The generated text, without the prompt. */
  readonly text: string;
  /** `end`: end-of-text token; `stop`: a stop string; `length`: `maxTokens` reached; `context`: the context is full; `cancelled`: by the signal, or by leaving the loop. */
  readonly reason: "end" | "stop" | "length" | "context" | "cancelled";
  /** Tokens of the prompt. */
  readonly promptTokens: number;
  /** Tokens of the prompt that were in the KV cache. */
  readonly cachedTokens: number;
  /** Tokens generated. */
  readonly newTokens: number;
  /** Milliseconds to the first token. */
  readonly promptMs: number;
  /** Milliseconds from the first token to the last. */
  readonly decodeMs: number;
  /** Milliseconds of script and WebAssembly per token, without GPU time. */
  readonly hostMsPerToken: number;
}

/** Text being generated: `for await` yields its pieces, `result` resolves when it ends. One loop at a time; leaving it stops generation. */
export interface Generation extends AsyncIterable<Piece> {
  /** Resolves at the end, even if nobody iterates. */
  readonly result: Promise<GenerateResult>;
}

/** One conversation. Its KV cache is reused, so only new tokens are computed. */
export interface Sequence {
  /** Continues a prompt, given as text or token ids. */
  generate(prompt: string | readonly number[], options?: GenerateOptions): Generation;
  /** Answers a conversation, using the model's chat template. */
  chat(messages: readonly Message[], options?: GenerateOptions): Generation;
  /** Frees all its resources. */
  dispose(): Promise<void>;
}

/** A loaded language model and its device. */
export interface ModelInfo {
  /** The URL or the file's name. */
  readonly name: string;
  /** Size of the vocabulary, in tokens. */
  readonly vocabulary: number;
  /** Context length, in tokens. */
  readonly context: number;
  /** If false, only token ids can be used. */
  readonly hasTokenizer: boolean;
  /** If false, `chat` is refused. */
  readonly hasChatTemplate: boolean;
  /** Threads of the CPU's kernels; 1 where a GPU is used. */
  readonly threads: number;
  /** The device right after loading; `Model.device()` returns its current state. */
  readonly device: DeviceInfo;
}

/** A loaded language model. Its own `generate` and `chat` share one sequence. Generations run one at a time; others wait. */
export interface Model extends Sequence {
  /** The model and its device. */
  readonly info: ModelInfo;
  /** Another conversation with the same weights. */
  createSequence(options?: CallOptions): Promise<Sequence>;
  /** The tokens of a text. */
  encode(text: string, options?: CallOptions): Promise<number[]>;
  /** The text of tokens. */
  decode(tokens: readonly number[], options?: CallOptions): Promise<string>;
  /** The device's current state and memory use. */
  device(options?: CallOptions): Promise<DeviceInfo>;
  /** After the code `device-lost`: loads the model again, on a new device; sequences can be continued. If it fails, it can be called again. */
  recover(options?: { readonly signal?: AbortSignal; readonly onProgress?: (progress: Progress) => void }): Promise<void>;
  /** Stops what runs and frees all its resources. */
  dispose(): Promise<void>;
}

/** What a program holds and how it would run here. See `inspectProgram`. */
export interface ProgramReport {
  /** The URL or the file's name. */
  readonly name: string;
  /** Size of the file. */
  readonly fileBytes: number;
  /** All of its methods, also those that only hold constants. */
  readonly methods: readonly MethodReport[];
  /** The device it was planned for. */
  readonly device: DeviceInfo;
}
/** What a method of a program is made of. */
export interface MethodReport {
  /** What `Program.run` takes. */
  readonly name: string;
  /** No instructions: its outputs are constants, in `values`. */
  readonly metadata: boolean;
  /** The constants, where `metadata`. */
  readonly values?: readonly (number | boolean | string | null)[];
  /** What it takes, in order. */
  readonly inputs: readonly ValueInfo[];
  /** What it gives, in order. */
  readonly outputs: readonly ValueInfo[];
  /** Its operators, each once. */
  readonly operators: readonly OperatorUse[];
  /** Its constants and its state. */
  readonly weights: readonly WeightInfo[];
  /** What a run needs. */
  readonly memory: MemoryUse;
  /** What exceeds this device's limits, one sentence each. */
  readonly excess: readonly string[];
  /** Why it cannot run; empty if it can. */
  readonly problem: string;
  /** Its operators and how they follow each other. */
  readonly graph: Graph;
}
/** A constant, or a piece of state such as a KV cache. */
export interface WeightInfo {
  /** As the program names it. */
  readonly name: string;
  /** Type of the elements. */
  readonly dtype: DType;
  /** Sizes, the outermost dimension first. */
  readonly dims: readonly number[];
  /** Its size in the file, or in memory where it is state. */
  readonly bytes: number;
  /** Whether runs change it. */
  readonly state: boolean;
}
/** Bytes of memory, by what they are for. */
export interface MemoryUse {
  /** On the device, all together. */
  readonly total: number;
  /** Weights and other constants. */
  readonly constants: number;
  /** State that persists between runs, such as KV caches. */
  readonly state: number;
  /** Values between operators. */
  readonly activations: number;
  /** Temporary buffers of kernels. */
  readonly scratch: number;
  /** Buffers for transferring inputs and outputs. */
  readonly transfer: number;
  /** In the page's memory. */
  readonly host: number;
}
/** An operator of a method, and how many of its calls run where. */
export interface OperatorUse {
  /** Such as `aten.add.Tensor`. */
  readonly name: string;
  /** Calls of it. */
  readonly count: number;
  /** Calls that run on the GPU. */
  readonly gpu: number;
  /** Calls that run on the CPU. */
  readonly cpu: number;
  /** Calls that need no work, such as views. */
  readonly free: number;
  /** Calls that cannot run here. */
  readonly unsupported: number;
}
/** The graph after fusion. */
export interface Graph {
  /** Operators in the order in which they run, then inputs, constants and outputs. */
  readonly nodes: readonly GraphNode[];
  /** Pairs of positions in `nodes`: from, to. */
  readonly edges: readonly (readonly [number, number])[];
}
/** An operator or a value of a graph. */
export interface GraphNode {
  /** Of the operator or the value. */
  readonly name: string;
  /** Where an operator runs, or what a value is. */
  readonly place: "gpu" | "cpu" | "free" | "unsupported" | "input" | "output" | "constant";
  /** Type and sizes of what it gives, as text. */
  readonly shape: string;
}

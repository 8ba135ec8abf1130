// What the package's functions take and give. SPDX-License-Identifier: BSD-3-Clause
import type { CacheEntry } from "./source/cache.js";

/**
 * Where a file comes from: an address, a file that was dropped or chosen, bytes, or what `cache.list` gave, such as the conversion of a file that is not
 * at hand any more. In Node, a string is a path unless it begins with a scheme.
 */
export type Input = string | URL | Blob | ArrayBuffer | Uint8Array | CacheEntry;

/** How far something is that takes more than a moment. */
export interface Progress {
  /** `download`: bytes come over the network or from a file; `convert`: a GGUF file becomes a program; `upload`: weights go to the GPU; `compile`: shaders are compiled. */
  readonly phase: "download" | "convert" | "upload" | "compile";
  /** Of the whole load, from 0 to 1; never decreases. */
  readonly fraction: number;
  /** Of this phase. */
  readonly doneBytes: number;
  /** Of this phase; 0 where it is not known. */
  readonly totalBytes: number;
}

/** Options of `loadProgram` and `loadModel`. */
export interface LoadOptions {
  /** Ends the load; the promise rejects with the code `cancelled`. */
  readonly signal?: AbortSignal;
  /** Called as the load goes on. */
  readonly onProgress?: (progress: Progress) => void;
  /** `true`, the default: everything runs in a worker; `false`: on the thread that calls. */
  readonly worker?: boolean;
  /** `auto`, the default: the GPU, or the CPU where there is no WebGPU, which `info.fallback` then says. */
  readonly device?: "auto" | "gpu" | "cpu";
  /** Of matrix products: `f32`, or `f16`, which rounds their operands and is faster on most GPUs. Unless told, `f16` for `loadModel` and `f32` for `loadProgram`, as on the command line. */
  readonly precision?: "f32" | "f16";
  /** Element type of KV caches. */
  readonly kv?: "f32" | "f16";
  /** External weights (`.ptd`) of a program. */
  readonly data?: readonly Input[];
  /** Keeps downloads and conversions for the next visit; `true` unless told. Browsers only. */
  readonly cache?: boolean;
  /** Keeps conversions of GGUF files in this folder; without one, they are temporary files. Node only. */
  readonly cacheFolder?: string;
  /**
   * SHA-256 of the file, in hexadecimal. A file with another one is refused with the code `invalid-program` and not kept. A kept file that was
   * compared before is used without asking the server.
   */
  readonly sha256?: string;
  /** Bytes of GPU memory; a program that needs more is refused before anything is allocated. */
  readonly memoryLimit?: number;
  /**
   * Threads of the CPU's kernels; unless told, one for each core, as far as the platform tells of them. More than one needs Node or a page that is
   * cross-origin isolated; results do not depend on the number.
   */
  readonly threads?: number;
}

/** Options of `loadModel`. */
export interface ModelOptions extends LoadOptions {
  /** In place of the tokenizer that the file carries. */
  readonly tokenizer?: Input;
}

/** Options of `inspectProgram`. */
export type InspectOptions = Pick<LoadOptions, "signal" | "onProgress" | "worker" | "device" | "precision" | "data" | "cache" | "cacheFolder">;

/** What runs a program, and what it cost. */
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
  /** Sentences on what is used in place of something better, and why; empty where nothing is. */
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
/** What a method takes: a tensor, an array that has the element type and the largest size of the input, a number, a boolean, a text, or nothing. */
export type InputValue = Tensor | TypedArray | readonly number[] | number | bigint | boolean | string | null;
/** What a method gives. */
export type OutputValue = Tensor | number | bigint | boolean | string | null;

/** An input or output of a method. */
export interface ValueInfo {
  /** What `Program.run` takes and gives it by; `input0`, `output0` and so on where the program has no names. */
  readonly name: string;
  /** What it is. */
  readonly kind: "tensor" | "int" | "float" | "bool" | "string" | "none";
  /** Type of the elements, of tensors. */
  readonly dtype?: DType;
  /** Sizes, of tensors; upper bounds where `dynamic`. */
  readonly dims?: readonly number[];
  /** Whether a tensor may be smaller than `dims`. */
  readonly dynamic?: boolean;
  /** The only value it takes, of inputs that are not tensors. */
  readonly value?: number | boolean | string | null;
}
/** A method of a program. */
export interface MethodInfo {
  /** What `Program.run` takes; most programs have one, `forward`. */
  readonly name: string;
  /** What it takes, in order. */
  readonly inputs: readonly ValueInfo[];
  /** What it gives, in order. */
  readonly outputs: readonly ValueInfo[];
}
/** A program that is loaded, and what runs it. */
export interface ProgramInfo {
  /** The address or the file's name. */
  readonly name: string;
  /** Its methods, without those that only hold constants. */
  readonly methods: readonly MethodInfo[];
  /** Threads of the CPU's kernels; 1 where a GPU is used. */
  readonly threads: number;
  /** The device, as it was right after the load; `Program.device` has the present state. */
  readonly device: DeviceInfo;
}

/** Outputs by name (`info.methods[i].outputs[j].name`) and by position. */
export interface Outputs {
  /** By name. */
  readonly [name: string]: OutputValue;
  /** By position, from 0. */
  readonly [position: number]: OutputValue;
}

/** Options of `Program.run`. */
export interface RunOptions {
  /** Ends the run; the promise rejects with the code `cancelled`. */
  readonly signal?: AbortSignal;
}

/** A program that is loaded: any `.pte`. */
export interface Program {
  /** Its methods, and what runs it. */
  readonly info: ProgramInfo;
  /** Runs a method with inputs by position or by name. State such as KV caches is kept from run to run. */
  run(method: string, inputs: readonly InputValue[] | Readonly<Record<string, InputValue>>, options?: RunOptions): Promise<Outputs>;
  /** Puts all state back to what it was after the load. */
  reset(): Promise<void>;
  /** What the device holds now. */
  device(): Promise<DeviceInfo>;
  /** Frees all that it holds. */
  dispose(): Promise<void>;
}

/** One message of a conversation. */
export interface Message {
  /** Who says it. */
  readonly role: "system" | "user" | "assistant" | "tool";
  /** What is said. */
  readonly content: string;
  /** Of a tool, where the model's chat template uses it. */
  readonly name?: string;
}

/** How text is drawn; what is left out is as on the command line: greedy, without penalties. */
export interface GenerateOptions {
  /** Most tokens to draw; as many as fit in the context unless told. */
  readonly maxTokens?: number;
  /** 0, the default, takes the likeliest token each time. */
  readonly temperature?: number;
  /** Draws from this many of the likeliest tokens. */
  readonly topK?: number;
  /** Draws from the likeliest tokens whose probabilities add up to this. */
  readonly topP?: number;
  /** Leaves out tokens less likely than this share of the likeliest. */
  readonly minP?: number;
  /** Divides the logits of tokens that already occurred, where positive; 1 is off. */
  readonly repetitionPenalty?: number;
  /** Taken off the logits of tokens that already occurred. */
  readonly presencePenalty?: number;
  /** Taken off the logits of tokens for each time they occurred. */
  readonly frequencyPenalty?: number;
  /** The same seed, prompt and options give the same text on the same device. */
  readonly seed?: number;
  /** Text ends before the first of these. */
  readonly stop?: readonly string[];
  /** Gives `logProbability` of each token. */
  readonly logProbabilities?: boolean;
  /** Goes on where the model would end its text. */
  readonly ignoreEnd?: boolean;
  /** At the end of the context, forgets the older half and goes on. */
  readonly shift?: boolean;
  /** Ends the text; `result` then has the reason `cancelled`. */
  readonly signal?: AbortSignal;
  /** How much of the prompt has been read. */
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

/** How a text ended. */
export interface GenerateResult {
  /** All of it, without the prompt. */
  readonly text: string;
  /** `end`: the model ended it; `stop`: a stop text; `length`: `maxTokens`; `context`: no position is left; `cancelled`: the signal, or the loop was left. */
  readonly reason: "end" | "stop" | "length" | "context" | "cancelled";
  /** Tokens of the prompt. */
  readonly promptTokens: number;
  /** Tokens of the prompt that were in the KV cache. */
  readonly cachedTokens: number;
  /** Tokens that were drawn. */
  readonly newTokens: number;
  /** Milliseconds until the first token was there. */
  readonly promptMs: number;
  /** Milliseconds from the first token to the last. */
  readonly decodeMs: number;
  /** Milliseconds of script and WebAssembly for each token, without the GPU's. */
  readonly hostMsPerToken: number;
}

/** A text that is being made: `for await` gives its pieces, `result` how it ended. Leaving the loop ends the text. */
export interface Generation extends AsyncIterable<Piece> {
  /** Resolves at the end, also where nobody asks for pieces. */
  readonly result: Promise<GenerateResult>;
}

/** One conversation: it keeps what was computed of its text, so that only what is new is computed. */
export interface Sequence {
  /** Continues a text or token ids. */
  generate(prompt: string | readonly number[], options?: GenerateOptions): Generation;
  /** Answers a conversation, by the model's chat template. */
  chat(messages: readonly Message[], options?: GenerateOptions): Generation;
  /** Frees all that it holds. */
  dispose(): Promise<void>;
}

/** A language model that is loaded, and what runs it. */
export interface ModelInfo {
  /** The address or the file's name. */
  readonly name: string;
  /** Tokens that it knows. */
  readonly vocabulary: number;
  /** Tokens that a sequence holds. */
  readonly context: number;
  /** Without one, only token ids can be given and taken. */
  readonly hasTokenizer: boolean;
  /** Without one, `chat` is refused. */
  readonly hasChatTemplate: boolean;
  /** Threads of the CPU's kernels; 1 where a GPU is used. */
  readonly threads: number;
  /** The device, as it was right after the load; `Model.device` has the present state. */
  readonly device: DeviceInfo;
}

/** A language model that is loaded. Its own `generate` and `chat` share one sequence; one text is made at a time, others wait. */
export interface Model extends Sequence {
  /** What it is, and what runs it. */
  readonly info: ModelInfo;
  /** Another conversation with the same weights. */
  createSequence(): Promise<Sequence>;
  /** The tokens of a text. */
  encode(text: string): Promise<number[]>;
  /** The text of tokens. */
  decode(tokens: readonly number[]): Promise<string>;
  /** What the device holds now. */
  device(): Promise<DeviceInfo>;
  /** After the code `device-lost`: loads the model again, on a new device; sequences go on where they were. */
  recover(options?: { readonly signal?: AbortSignal; readonly onProgress?: (progress: Progress) => void }): Promise<void>;
}

/** What a program holds and how it would run here. See `inspectProgram`. */
export interface ProgramReport {
  /** The address or the file's name. */
  readonly name: string;
  /** Size of the file. */
  readonly fileBytes: number;
  /** All of its methods, also those that only hold constants. */
  readonly methods: readonly MethodReport[];
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
  /** What does not fit this device's limits, in sentences. */
  readonly excess: readonly string[];
  /** Why it cannot run; empty where it can. */
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
  /** What is kept from run to run, such as KV caches. */
  readonly state: number;
  /** Values between operators. */
  readonly activations: number;
  /** What kernels need for themselves. */
  readonly scratch: number;
  /** Inputs and outputs on their way. */
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

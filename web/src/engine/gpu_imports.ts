// The GPUDevice as the module uses it: objects by number, one call for a recorded span. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { Answer, type Host } from "./host.js";
import type { Sources } from "./source_imports.js";
import { Uploads } from "./uploads.js";

interface Buffer {
  readonly buffer: GPUBuffer;
  pending: number;
  code: number;
  message: string;
}
interface Pipeline {
  pipeline?: GPUComputePipeline;
  readonly layout: GPUBindGroupLayout;
  message?: string;
}
interface Read {
  readonly buffer: GPUBuffer;
  readonly from: number; // of what is mapped: a multiple of 8
  readonly mappedSize: number;
  readonly skip: number; // bytes of it before those that are wanted
  readonly size: number;
  state: "pending" | "mapped" | "failed" | "released";
  message: string;
}

// In the order of C++'s BufferKind and BindingKind. Usage: storage, copy source and target; uniform; map for reading.
const kUsages = [0x80 | 0x4 | 0x8, 0x40 | 0x8, 0x1 | 0x8];
const kBindings: readonly GPUBufferBindingType[] = ["uniform", "read-only-storage", "storage"];
const kCompute = 0x4;
const kMapRead = 0x1;
const kSlot = 0xfffff;
const kDispatchWords = 5;
const kCopyWords = 10;
// What fails because the device is lost may fail so long before that is told.
const kLossMs = 200;

/** One GPUDevice and its objects. */
class Gpu {
  readonly buffers: (Buffer | undefined)[] = [];
  readonly pipelines: (Pipeline | undefined)[] = [];
  readonly groups: (GPUBindGroup | undefined)[] = [];
  readonly reads: (Read | undefined)[] = [];
  readonly layouts = new Map<string, { group: GPUBindGroupLayout; pipeline: GPUPipelineLayout }>();
  readonly uploads: Uploads;
  error: { code: number; message: string } | undefined;
  lost: string | undefined;
  closed = false;

  constructor(
    readonly device: GPUDevice,
    readonly host: Host,
    sources: Sources,
  ) {
    this.uploads = new Uploads(device, sources);
    device.addEventListener("uncapturederror", (event) => {
      const error = (event as GPUUncapturedErrorEvent).error;
      this.error ??= { code: isOutOfMemory(error) ? Answer.memory : Answer.device, message: error.message };
      host.wake();
    });
    void device.lost.then((info) => {
      this.lost = `the GPU device is lost: ${info.message || info.reason || "no reason was given"}`;
      host.wake();
    });
  }

  /** The first error that nobody asked for; of a lost device always. */
  takeError(): number {
    if (this.lost !== undefined) return this.host.fail(Answer.device, this.lost);
    const error = this.error;
    if (error === undefined) return Answer.done;
    this.error = undefined;
    return this.host.fail(error.code, error.message);
  }
  /** What is to be said of a promise of the device that was rejected with this. */
  async explain(error: unknown): Promise<string> {
    await Promise.race([this.device.lost, new Promise((resolve) => setTimeout(resolve, kLossMs))]);
    return this.lost ?? String(error);
  }

  createBuffer(id: number, size: number, kind: number, label: string): void {
    const { device } = this;
    device.pushErrorScope("validation");
    device.pushErrorScope("out-of-memory");
    const made: Buffer = { buffer: device.createBuffer({ label, size, usage: kUsages[kind]! }), pending: 1, code: 0, message: "" };
    this.buffers[id & kSlot] = made;
    const memory = device.popErrorScope();
    const validation = device.popErrorScope();
    void Promise.all([memory, validation])
      .then(([noMemory, invalid]) => {
        const error = noMemory ?? invalid;
        if (error === null) return;
        made.code = noMemory !== null ? Answer.memory : Answer.device;
        made.message = noMemory !== null ? `no memory is left on the GPU: ${error.message}` : error.message;
      })
      .catch(async (error: unknown) => this.failBuffer(made, Answer.device, await this.explain(error)))
      .then(() => this.settleBuffer(made));
  }
  failBuffer(buffer: Buffer, code: number, message: string): void {
    if (buffer.code !== 0) return;
    buffer.code = code;
    buffer.message = message;
  }
  settleBuffer(buffer: Buffer): void {
    --buffer.pending;
    this.host.wake();
  }

  layout(kinds: Uint8Array): { group: GPUBindGroupLayout; pipeline: GPUPipelineLayout } {
    const key = kinds.join();
    let layout = this.layouts.get(key);
    if (layout === undefined) {
      const entries = Array.from(kinds, (kind, binding) => ({ binding, visibility: kCompute, buffer: { type: kBindings[kind]! } }));
      const group = this.device.createBindGroupLayout({ entries });
      layout = { group, pipeline: this.device.createPipelineLayout({ bindGroupLayouts: [group] }) };
      this.layouts.set(key, layout);
    }
    return layout;
  }
  createPipeline(id: number, label: string, code: string, constants: Record<string, number>, kinds: Uint8Array): void {
    const layout = this.layout(kinds);
    const made: Pipeline = { layout: layout.group };
    this.pipelines[id & kSlot] = made;
    const module = this.device.createShaderModule({ label, code });
    void this.device
      .createComputePipelineAsync({ label, layout: layout.pipeline, compute: { module, entryPoint: "main", constants } })
      .then(
        (pipeline) => {
          made.pipeline = pipeline;
        },
        async (error: unknown) => {
          const info = await module.getCompilationInfo().catch(() => undefined);
          const first = info?.messages.find((message) => message.type === "error");
          made.message = first === undefined ? await this.explain(error) : `line ${first.lineNum}: ${first.message}`;
        },
      )
      .then(() => this.host.wake());
  }

  submit(words: Uint32Array, dispatches: number, dispatchCount: number, copies: number, copyCount: number): void {
    const encoder = this.device.createCommandEncoder();
    let pass: GPUComputePassEncoder | undefined;
    let pipeline = 0;
    let group = 0;
    const end = (dispatches >>> 2) + dispatchCount * kDispatchWords;
    for (let at = dispatches >>> 2; at < end; at += kDispatchWords) {
      const x = words[at + 2]!;
      const y = words[at + 3]!;
      const z = words[at + 4]!;
      if (x === 0 || y === 0 || z === 0) continue;
      pass ??= encoder.beginComputePass();
      if (words[at] !== pipeline) {
        pipeline = words[at]!;
        pass.setPipeline(this.pipelines[pipeline & kSlot]!.pipeline!);
      }
      if (words[at + 1] !== group) {
        group = words[at + 1]!;
        pass.setBindGroup(0, this.groups[group & kSlot]!);
      }
      pass.dispatchWorkgroups(x, y, z);
    }
    pass?.end();
    for (let i = 0, at = copies >>> 2; i < copyCount; ++i, at += kCopyWords) {
      const size = words[at + 8]! + words[at + 9]! * 2 ** 32;
      if (size === 0) continue;
      const from = words[at + 2]! + words[at + 3]! * 2 ** 32;
      const to = words[at + 6]! + words[at + 7]! * 2 ** 32;
      encoder.copyBufferToBuffer(this.buffers[words[at]! & kSlot]!.buffer, from, this.buffers[words[at + 4]! & kSlot]!.buffer, to, size);
    }
    this.device.queue.submit([encoder.finish()]);
  }

  read(ticket: number, id: number, offset: number, size: number): void {
    const buffer = this.buffers[id & kSlot]!.buffer;
    const from = Math.floor(offset / 8) * 8;
    const mappedSize = Math.ceil((offset + size) / 4) * 4 - from;
    const read: Read = { buffer, from, mappedSize, skip: offset - from, size, state: "pending", message: "" };
    this.reads[ticket & kSlot] = read;
    void buffer.mapAsync(kMapRead, from, mappedSize).then(
      () => {
        if (read.state === "released") return;
        read.state = "mapped";
        this.host.wake();
      },
      async (error: unknown) => {
        read.message = await this.explain(error);
        if (read.state === "released") return;
        read.state = "failed";
        this.host.wake();
      },
    );
  }
  copyRead(ticket: number, out: number): void {
    const { buffer, from, mappedSize, skip, size } = this.reads[ticket & kSlot]!;
    this.host.memory.view(out, size).set(new Uint8Array(buffer.getMappedRange(from, mappedSize), skip, size));
  }
}

function isOutOfMemory(error: GPUError): boolean {
  return error.constructor.name === "GPUOutOfMemoryError";
}

/** GPUDevices that the module knows by number, and the functions that it imports. */
export class Gpus {
  readonly #gpus = new Map<number, Gpu>();
  #last = 0;

  constructor(
    readonly host: Host,
    readonly sources: Sources,
  ) {}

  add(device: GPUDevice): number {
    const id = ++this.#last;
    this.#gpus.set(id, new Gpu(device, this.host, this.sources));
    return id;
  }
  isLost(): boolean {
    return [...this.#gpus.values()].some((gpu) => gpu.lost !== undefined && !gpu.closed);
  }

  imports() {
    const { host } = this;
    const find = (id: number): Gpu => this.#gpus.get(id)!;
    return {
      gpu_buffer_create: (gpu: number, id: number, size: number, kind: number, label: number, labelSize: number): void =>
        find(gpu).createBuffer(id, size, kind, host.memory.text(label, labelSize)),
      gpu_buffer_destroy: (gpu: number, id: number): void => {
        const { buffers, uploads } = find(gpu);
        const buffer = buffers[id & kSlot];
        buffers[id & kSlot] = undefined;
        if (buffer === undefined) return;
        uploads.forget(buffer.buffer);
        buffer.buffer.destroy();
      },
      gpu_buffer_answer: (gpu: number, id: number): number => {
        const buffer = find(gpu).buffers[id & kSlot]!;
        if (buffer.code !== 0) return host.fail(buffer.code, buffer.message);
        return buffer.pending === 0 ? Answer.done : Answer.later;
      },
      gpu_pipeline_create: (
        gpu: number, id: number, label: number, labelSize: number, code: number, codeSize: number,
        constants: number, constantCount: number, bindings: number, bindingCount: number,
      ): void => {
        const { memory } = host;
        const values: Record<string, number> = {};
        for (let i = 0, at = constants >>> 0; i < constantCount; ++i, at += 16) {
          values[memory.text(memory.words[at >>> 2]!, memory.words[(at >>> 2) + 1]!)] = memory.f64(at + 8);
        }
        find(gpu).createPipeline(id, memory.text(label, labelSize), memory.text(code, codeSize), values, memory.view(bindings, bindingCount).slice());
      },
      gpu_pipeline_answer: (gpu: number, id: number): number => {
        const pipeline = find(gpu).pipelines[id & kSlot]!;
        if (pipeline.pipeline !== undefined) return Answer.done;
        return pipeline.message === undefined ? Answer.later : host.fail(Answer.device, pipeline.message);
      },
      gpu_bind_group_create: (gpu: number, id: number, pipeline: number, label: number, labelSize: number, entries: number, count: number): void => {
        const { memory } = host;
        const { device, buffers, groups, pipelines } = find(gpu);
        const list: GPUBindGroupEntry[] = [];
        for (let i = 0, at = entries >>> 0; i < count; ++i, at += 24) {
          const buffer = buffers[memory.words[at >>> 2]! & kSlot]!.buffer;
          list.push({ binding: i, resource: { buffer, offset: memory.wide(at + 8), size: memory.wide(at + 16) } });
        }
        groups[id & kSlot] = device.createBindGroup({
          label: memory.text(label, labelSize),
          layout: pipelines[pipeline & kSlot]!.layout,
          entries: list,
        });
      },
      gpu_bind_group_destroy: (gpu: number, id: number): void => {
        find(gpu).groups[id & kSlot] = undefined;
      },
      gpu_write: (gpu: number, id: number, offset: number, bytes: number, size: number): void => {
        const { device, buffers } = find(gpu);
        device.queue.writeBuffer(buffers[id & kSlot]!.buffer, offset, host.memory.memory.buffer as ArrayBuffer, bytes >>> 0, size);
      },
      gpu_write_source: (gpu: number, id: number, offset: number, source: number, from: number, size: number): void => {
        const owner = find(gpu);
        const buffer = owner.buffers[id & kSlot]!;
        ++buffer.pending;
        void owner.uploads
          .add({ buffer: buffer.buffer, offset, source, from, size })
          .catch(async (error: unknown) => {
            if (error instanceof PteryxError) owner.failBuffer(buffer, Answer.io, error.message);
            else owner.failBuffer(buffer, Answer.device, await owner.explain(error));
          })
          .then(() => owner.settleBuffer(buffer));
      },
      gpu_submit: (gpu: number, dispatches: number, dispatchCount: number, copies: number, copyCount: number): void =>
        find(gpu).submit(host.memory.words, dispatches, dispatchCount, copies, copyCount),
      gpu_read: (gpu: number, ticket: number, id: number, offset: number, size: number): void => find(gpu).read(ticket, id, offset, size),
      gpu_read_answer: (gpu: number, ticket: number): number => {
        const read = find(gpu).reads[ticket & kSlot]!;
        if (read.state === "failed") return host.fail(Answer.device, read.message);
        return read.state === "mapped" ? Answer.done : Answer.later;
      },
      gpu_read_copy: (gpu: number, ticket: number, out: number): void => find(gpu).copyRead(ticket, out),
      gpu_read_release: (gpu: number, ticket: number): void => {
        const { reads } = find(gpu);
        const read = reads[ticket & kSlot];
        reads[ticket & kSlot] = undefined;
        if (read === undefined) return;
        if (read.state !== "failed") read.buffer.unmap();
        read.state = "released";
      },
      gpu_error: (gpu: number): number => find(gpu).takeError(),
      gpu_close: (gpu: number): void => {
        const owner = find(gpu);
        owner.closed = true;
        owner.uploads.close();
        owner.device.destroy();
        this.#gpus.delete(gpu);
      },
    };
  }
}

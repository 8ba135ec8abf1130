// GGUF files of small models with made-up weights, the same for the same arguments. SPDX-License-Identifier: BSD-3-Clause
import { open } from "node:fs/promises";

const kTypes = { f32: 0, f16: 1, q4_0: 2, q8_0: 8 };
const kAlignment = 32;

/** Numbers in [-1, 1), made from integers alone so that every machine makes the same. */
function randomNumbers(seed) {
  let state = (seed * 2654435761) >>> 0 || 1;
  return () => {
    state ^= state << 13, state ^= state >>> 17, state ^= state << 5;
    return (state >>> 8) / 2 ** 23 - 1;
  };
}

/** A half that is a multiple of 2^-12, near a value of magnitude below 1/2. */
function halfBits(value) {
  const magnitude = Math.min(Math.floor(Math.abs(value) * 4096), 2047);
  if (magnitude === 0) return 0;
  const exponent = 31 - Math.clz32(magnitude);
  return (value < 0 ? 0x8000 : 0) | ((exponent - 12 + 15) << 10) | ((magnitude - 2 ** exponent) * 2 ** (10 - exponent));
}

class Writer {
  parts = [];
  size = 0;
  bytes(buffer) {
    this.parts.push(Buffer.from(buffer.buffer ?? buffer, buffer.byteOffset, buffer.byteLength));
    this.size += buffer.byteLength;
    return this;
  }
  u32(n) {
    return this.bytes(Uint32Array.of(n));
  }
  u64(n) {
    return this.bytes(BigUint64Array.of(BigInt(n)));
  }
  text(s) {
    const encoded = new TextEncoder().encode(s);
    return this.u64(encoded.length).bytes(encoded);
  }
  align() {
    return this.bytes(new Uint8Array((kAlignment - (this.size % kAlignment)) % kAlignment));
  }
  end() {
    return Buffer.concat(this.parts);
  }
}

function metadata(values) {
  const out = new Writer();
  for (const [key, value] of Object.entries(values)) {
    out.text(key);
    if (typeof value === "string") out.u32(8).text(value);
    else if (typeof value === "boolean") out.u32(7).bytes(Uint8Array.of(value ? 1 : 0));
    else if (Number.isInteger(value)) out.u32(4).u32(value);
    else if (typeof value === "number") out.u32(6).bytes(Float32Array.of(value));
    else if (typeof value[0] === "string") value.reduce((w, s) => w.text(s), out.u32(9).u32(8).u64(value.length));
    else out.u32(9).u32(5).u64(value.length).bytes(Int32Array.from(value));
  }
  return { count: Object.keys(values).length, bytes: out.end() };
}

/** Rows of a matrix, or a vector, as blocks of a type. */
function encode(type, count, next, scale) {
  if (type === "f32") return new Float32Array(count).map(() => next() * scale);
  if (type === "f16") return new Uint16Array(count).map(() => halfBits(next() * scale));
  const codes = type === "q8_0" ? 32 : 16;
  const out = new Uint8Array((count / 32) * (2 + codes));
  const view = new DataView(out.buffer);
  for (let at = 0; at < out.length; at += 2 + codes) {
    view.setUint16(at, halfBits(((next() + 1.5) * scale) / (type === "q8_0" ? 2 : 1)), true);
    for (let i = 0; i < codes; i++) out[at + 2 + i] = Math.floor((next() + 1) * 128);
    if (type === "q8_0") for (let i = 0; i < codes; i++) out[at + 2 + i] = Math.floor(next() * 7) & 255;
  }
  return out;
}

/** The characters by which byte-level tokenizers write bytes. */
function byteTokens() {
  const plain = (b) => (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  let shifted = 256;
  return Array.from({ length: 256 }, (_, b) => String.fromCodePoint(plain(b) ? b : shifted++));
}

export const kChatTemplate =
  "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

function halves(word) {
  return `${word.slice(0, word.length / 2)} ${word.slice(word.length / 2)}`;
}

/** What stands before the tensors' data; `place(type, count)`: where the data of each tensor is, in turn. */
function makeHead({ hidden = 64, ffn = 96, layers = 2, type = "f16", words = 0, extra = {} }, place) {
  // Words are pairs of letters, which are tokens, and of such pairs.
  const letters = Array.from({ length: 26 }, (_, i) => String.fromCharCode(97 + i));
  const pairs = letters.flatMap((a) => letters.map((b) => a + b)).filter((pair) => pair !== "he");
  const made = words === 0 ? [] : [...pairs, ...pairs.flatMap((a) => pairs.map((b) => a + b))].slice(0, words);
  const tokens = [...byteTokens(), "<|im_start|>", "<|im_end|>", "Ġt", "he", ...made];
  const meta = metadata({
    "general.architecture": "llama", "llama.embedding_length": hidden, "llama.block_count": layers, "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2, "llama.feed_forward_length": ffn, "llama.context_length": 512, "llama.attention.layer_norm_rms_epsilon": 1e-5 + 0.1 ** 9,
    "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": tokens.map((token) => (token.startsWith("<|") ? 3 : 1)), "tokenizer.ggml.merges": ["Ġ t", "h e", ...made.map(halves)],
    "tokenizer.ggml.eos_token_id": 257, "tokenizer.chat_template": kChatTemplate, ...extra,
  });
  const tensors = [["token_embd.weight", [tokens.length, hidden]], ["output_norm.weight", [hidden]]];
  for (let i = 0; i < layers; i++) {
    const shapes = {
      attn_norm: [hidden], ffn_norm: [hidden], attn_q: [hidden, hidden], attn_k: [hidden / 2, hidden], attn_v: [hidden / 2, hidden],
      attn_output: [hidden, hidden], ffn_gate: [ffn, hidden], ffn_up: [ffn, hidden], ffn_down: [hidden, ffn],
    };
    for (const [name, dims] of Object.entries(shapes)) tensors.push([`blk.${i}.${name}.weight`, dims]);
  }
  const infos = new Writer();
  for (const [name, dims] of tensors) {
    const kind = dims.length === 1 ? "f32" : type;
    infos.text(name).u32(dims.length);
    for (const d of [...dims].reverse()) infos.u64(d);
    infos.u32(kTypes[kind]).u64(place(kind, dims.reduce((product, d) => product * d, 1)));
  }
  return new Writer().bytes(new TextEncoder().encode("GGUF")).u32(3).u64(tensors.length).u64(meta.count).bytes(meta.bytes).bytes(infos.end()).align().end();
}

/**
 * A model of the architecture `llama` that speaks bytes.
 * @param {{ hidden?: number, ffn?: number, layers?: number, type?: "f32" | "f16" | "q4_0" | "q8_0", seed?: number, words?: number, extra?: object }} [options]
 *   `type`: of matrices; `words`: that the tokenizer knows beside bytes; `extra`: more metadata, or other
 */
export function makeGguf(options = {}) {
  const random = randomNumbers(options.seed ?? 1);
  const data = new Writer();
  const head = makeHead(options, (type, count) => {
    const at = data.size;
    data.bytes(encode(type, count, random, 1 / Math.sqrt(options.hidden ?? 64))).align();
    return at;
  });
  return Buffer.concat([head, data.end()]);
}

/** The same with few weights that are not zero, no two matrices alike, in a file that takes hardly any room on the disk. */
export async function writeSparseGguf(path, options) {
  const bytes = { f32: 4, f16: 2, q4_0: 18 / 32, q8_0: 34 / 32 };
  const places = [];
  let end = 0;
  const head = makeHead(options, (type, count) => {
    places.push(end);
    end = Math.ceil((end + count * bytes[type]) / kAlignment) * kAlignment;
    return places.at(-1);
  });
  const file = await open(path, "w");
  try {
    await file.write(head, 0, head.length, 0);
    for (const [i, at] of places.entries()) await file.write(Uint16Array.of(halfBits(0.25), i + 1), 0, 4, head.length + at);
    await file.truncate(head.length + end);
  } finally {
    await file.close();
  }
}

// Runs the recorded cases of a manifest through the package and compares with what is recorded, as `pteryx verify` does. Runs in Node and in
// pages alike, so it imports nothing. SPDX-License-Identifier: BSD-3-Clause

const kTypes = {
  float32: ["f32", Float32Array], float64: ["f64", Float64Array], float16: ["f16", Uint16Array], bfloat16: ["bf16", Uint16Array],
  int64: ["i64", BigInt64Array], int32: ["i32", Int32Array], int16: ["i16", Int16Array], int8: ["i8", Int8Array], uint8: ["u8", Uint8Array], bool: ["bool", Uint8Array],
};

/** An IEEE half as a number. */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}
function bfloat(bits) {
  return new Float32Array(new Uint32Array([bits << 16]).buffer)[0];
}
function numberAt({ dtype, data }, i) {
  if (dtype === "f16") return half(data[i]);
  if (dtype === "bf16") return bfloat(data[i]);
  return Number(data[i]);
}

function goldenValue(files, golden) {
  if (golden === null || typeof golden !== "object") return golden;
  if ("scalar" in golden) return golden.scalar;
  const [dtype, Type] = kTypes[golden.dtype];
  const count = golden.shape.reduce((product, d) => product * d, 1);
  const bytes = files.get(golden.file).slice(golden.offset, golden.offset + count * Type.BYTES_PER_ELEMENT);
  return { dtype, dims: golden.shape, data: new Type(bytes.buffer) };
}

/** Empty where `got` is within tolerance of `want` everywhere. */
function compare(got, want, atol, rtol) {
  const near = (g, w) => g === w || (Number.isNaN(g) && Number.isNaN(w)) || Math.abs(g - w) <= atol + rtol * Math.abs(w);
  if (want === null || typeof want !== "object") {
    return typeof want === "string" ? (got === want ? "" : `expected ${want}, got ${got}`) : near(Number(got), Number(want)) ? "" : `expected ${want}, got ${got}`;
  }
  const tensor = typeof got === "number" ? { dtype: want.dtype, dims: want.dims, data: [got] } : got;
  if (tensor === null || typeof tensor !== "object") return "is not a tensor";
  if (tensor.dtype !== want.dtype) return `type: expected ${want.dtype}, got ${tensor.dtype}`;
  if (String(tensor.dims) !== String(want.dims)) return `shape: expected [${want.dims}], got [${tensor.dims}]`;
  for (let i = 0; i < want.data.length; ++i) {
    const g = numberAt(tensor, i);
    const w = numberAt(want, i);
    if (!near(g, w)) return `element ${i}: expected ${w}, got ${g}`;
  }
  return "";
}

async function verifyCase(pteryx, entry, files, inputOf, options) {
  const data = (entry.ptd ?? []).map(inputOf);
  const program = await pteryx.loadProgram(inputOf(entry.pte), { ...options, data });
  try {
    for (const [n, run] of entry.runs.entries()) {
      const inputs = run.inputs.map((golden) => goldenValue(files, golden));
      const outputs = await program.run(run.method ?? entry.method ?? "forward", inputs);
      for (const [i, golden] of run.outputs.entries()) {
        const problem = compare(outputs[i] ?? null, goldenValue(files, golden), entry.atol ?? 1e-4, entry.rtol ?? 1e-4);
        if (problem !== "") return `run ${n} output ${i} ${problem}`;
      }
    }
  } finally {
    await program.dispose();
  }
  return "";
}

/** The tokens that a language model draws, with those before them as they are recorded. */
async function verifyText(pteryx, entry, inputOf, options) {
  const model = await pteryx.loadModel(inputOf(entry.pte), { ...options, precision: "f32" });
  try {
    const tokens = [];
    for await (const piece of model.generate(entry.prompt_ids, { maxTokens: entry.greedy_ids.length, ignoreEnd: true })) tokens.push(piece.token);
    return String(tokens) === String(entry.greedy_ids) ? "" : `text: expected ${entry.greedy_ids}, got ${tokens}`;
  } finally {
    await model.dispose();
  }
}

/**
 * Runs all cases of a manifest. `fetchBytes(name)` gives a file beside it, `inputOf(name)` what the package loads it by.
 * Gives [name, problem] of each; problem is "" where it passed.
 */
export async function verifyManifest(pteryx, manifest, fetchBytes, inputOf, options = {}) {
  const outcomes = [];
  for (const entry of manifest.cases) {
    const names = new Set(entry.runs.flatMap((run) => [...run.inputs, ...run.outputs]).flatMap((g) => (g !== null && typeof g === "object" && "file" in g ? [g.file] : [])));
    const files = new Map();
    for (const name of names) files.set(name, await fetchBytes(name));
    let problem;
    try {
      problem = await verifyCase(pteryx, entry, files, inputOf, options);
      if (problem === "" && entry.greedy_ids !== undefined) problem = await verifyText(pteryx, entry, inputOf, options);
    } catch (error) {
      problem = `${error.code ?? error.name}: ${error.message}`;
    }
    outcomes.push([entry.name, problem]);
  }
  return outcomes;
}

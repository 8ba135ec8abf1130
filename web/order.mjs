// Orders pieces of a file so that similar ones stand side by side, where compressors that look back 32 kB find one in the other.
// SPDX-License-Identifier: BSD-3-Clause

const kBytes = 6; // of a shingle, whose bits a number holds exactly
const kWindow = 28_000;
const kCommon = 400; // pieces with a shingle in common that says nothing
const kRest = 300; // so that pieces of few shingles are not always the most similar

function shinglesOf(piece) {
  const found = new Set();
  for (let end = kBytes; end <= piece.length; end++) {
    let shingle = 0;
    for (const byte of piece.subarray(end - kBytes, end)) shingle = shingle * 256 + byte;
    found.add(shingle);
  }
  return [...found];
}

/** Indices of `pieces` (of bytes): from the largest, each the one that has most in common with the last ones. */
export function bySimilarity(pieces) {
  const owners = new Map();
  const all = pieces.map(shinglesOf);
  for (const [i, shingles] of all.entries()) for (const shingle of shingles) owners.has(shingle) ? owners.get(shingle).push(i) : owners.set(shingle, [i]);
  const shared = all.map((shingles) => shingles.filter((shingle) => owners.get(shingle).length > 1 && owners.get(shingle).length <= kCommon));

  const inWindow = new Map();
  const scores = new Float64Array(pieces.length);
  const count = (piece, by) => {
    for (const shingle of shared[piece]) {
      const before = inWindow.get(shingle) ?? 0;
      inWindow.set(shingle, before + by);
      if (before === 0 || before + by === 0) for (const owner of owners.get(shingle)) scores[owner] += by;
    }
  };
  const left = new Set(pieces.keys());
  const best = (value) => {
    let found = -1;
    for (const i of left) if (found < 0 || value(i) > value(found)) found = i;
    return found;
  };
  const order = [];
  const window = [];
  let windowBytes = 0;
  while (left.size > 0) {
    const next = order.length === 0 ? best((i) => pieces[i].length) : best((i) => scores[i] / (all[i].length + kRest));
    order.push(next);
    left.delete(next);
    window.push(next);
    windowBytes += pieces[next].length;
    count(next, 1);
    while (windowBytes > kWindow && window.length > 1) {
      const oldest = window.shift();
      windowBytes -= pieces[oldest].length;
      count(oldest, -1);
    }
  }
  return order;
}

const kName = 0;
const kCode = 10;
const kNamesOfFunctions = 1;

function leb(value) {
  const bytes = [];
  do bytes.push((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
  while ((value >>>= 7) > 0);
  return bytes;
}

/** A module's sections: `[id, content]`. */
function* sectionsOf(wasm) {
  for (let at = 8; at < wasm.length; ) {
    const id = wasm[at];
    const [size, begin] = readLeb(wasm, at + 1);
    yield [id, wasm.subarray(begin, begin + size)];
    at = begin + size;
  }
}

/** A number, and where the next byte is. */
function readLeb(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, at];
  }
}

/** The module without other names, but with names of its functions whose order is that of their similarity. */
export function nameBySimilarity(wasm) {
  const kept = [...sectionsOf(wasm)].filter(([id]) => id !== kName);
  const imported = WebAssembly.Module.imports(new WebAssembly.Module(wasm)).filter(({ kind }) => kind === "function").length;
  const [, code] = kept.find(([id]) => id === kCode);
  const bodies = [];
  let [count, at] = readLeb(code, 0);
  for (; count > 0; count--) {
    const [size, begin] = readLeb(code, at);
    bodies.push(code.subarray(begin, begin + size));
    at = begin + size;
  }
  const places = new Array(bodies.length);
  for (const [place, body] of bySimilarity(bodies).entries()) places[body] = place;
  const width = String(bodies.length).length;
  const names = places.flatMap((place, i) => {
    const name = String(place).padStart(width, "0");
    return [...leb(imported + i), ...leb(name.length), ...Buffer.from(name)];
  });
  const map = [...leb(bodies.length), ...names];
  const section = [4, ...Buffer.from("name"), kNamesOfFunctions, ...leb(map.length), ...map];
  const parts = [...kept, [kName, Uint8Array.from(section)]].flatMap(([id, content]) => [Uint8Array.from([id, ...leb(content.length)]), content]);
  return Buffer.concat([wasm.subarray(0, 8), ...parts]);
}

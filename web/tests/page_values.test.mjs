// Numbers, files and pictures of the page. SPDX-License-Identifier: BSD-3-Clause
import assert from "node:assert/strict";
import { test } from "node:test";
import { importTs } from "./support/import_ts.mjs";

const format = await importTs("page/src/format.ts");
const { halfToFloat, floatToHalf } = await importTs("page/src/run/half.ts");
const { readNpy, writeNpy, parseNumbers } = await importTs("page/src/run/npy.ts");
const images = await importTs("page/src/run/image_tensor.ts");
const { statisticsOf, rank, isScores, parseLabels } = await importTs("page/src/run/statistics.ts");
const { tensorOf, convertTensor } = await importTs("page/src/run/tensor.ts");

test("sizes, times and rates read well", () => {
  const cases = [[0, "0 bytes"], [1, "1 byte"], [999, "999 bytes"], [1000, "1.0 kB"], [9949, "9.9 kB"], [9950, "10 kB"], [999_499, "999 kB"],
    [999_500, "1.0 MB"], [138e6, "138 MB"], [2.04e9, "2.0 GB"], [-1, "unknown size"], [NaN, "unknown size"]];
  for (const [bytes, text] of cases) assert.equal(format.formatBytes(bytes), text);
  assert.equal(format.formatBytesOf(5e6, 0), "5.0 MB");
  assert.equal(format.formatBytesOf(5e6, 1e9), "5.0 MB of 1.0 GB");
  assert.deepEqual([0.42, 9.96, 350, 1400, 125_000].map(format.formatDuration), ["0.4 ms", "10 ms", "350 ms", "1.4 s", "2 min 5 s"]);
  assert.deepEqual([0, 0.5, 12.34, 140.2].map(format.formatRate), ["–", "0.50", "12.3", "140"]);
  assert.deepEqual([1, -2.5, 1e-9, 123456.7, NaN, -Infinity, 5n].map(format.formatElement), ["1", "−2.5000", "1.000e−9", "1.235e+5", "NaN", "−∞", "5"]);
  assert.equal(format.plural(1, "node"), "1 node");
  assert.equal(format.plural(1200, "node"), "1,200 nodes");
  assert.equal(format.nameOfUrl("https://x.org/a/my%20model.pte?x=1#y"), "my model.pte");
  assert.equal(format.nameOfUrl("https://x.org/%E0%A4%A"), "%E0%A4%A");
  assert.equal(format.formatAgo(0, 3 * 3600_000), "3 hours ago");
});

test("bf16 rounds, and is saved as f32", () => {
  const tensor = tensorOf("bf16", [4], (i) => [1, 1.00390625, 1.01171875, -3e38][i]);
  assert.deepEqual([...tensor.data], [0x3f80, 0x3f80, 0x3f82, 0xff62]);
  assert.deepEqual([...readNpy(writeNpy(tensor)).data].slice(0, 3), [1, 1, 1.015625]);
});

test("half floats", () => {
  for (const [value, bits] of [[0, 0], [1, 0x3c00], [-2, 0xc000], [65504, 0x7bff], [65520, 0x7c00], [2 ** -24, 1], [2 ** -14, 0x400], [1 / 3, 0x3555], [Infinity, 0x7c00]]) {
    assert.equal(floatToHalf(value), bits, String(value));
  }
  for (let bits = 0; bits < 0x10000; bits++) {
    const value = halfToFloat(bits);
    if (!Number.isNaN(value)) assert.equal(floatToHalf(value), bits);
  }
  assert.ok(Number.isNaN(halfToFloat(floatToHalf(NaN))));
});

test(".npy files come back as they were written", () => {
  for (const dtype of ["f32", "f64", "f16", "i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64", "bool"]) {
    for (const dims of [[], [3], [2, 3], [1, 0, 2]]) {
      const tensor = tensorOf(dtype, dims, (i) => i % 2);
      const file = writeNpy(tensor);
      assert.equal((file.length - tensor.data.byteLength) % 64, 0);
      assert.deepEqual(readNpy(file), { ...tensor, dims });
    }
  }
});

/** A file as NumPy writes it, byte by byte. */
function npy(header, body, version = 1) {
  const text = Buffer.from(`${header}\n`, "latin1");
  const head = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, version, 0]);
  const length = Buffer.alloc(version === 1 ? 2 : 4);
  version === 1 ? length.writeUInt16LE(text.length) : length.writeUInt32LE(text.length);
  return new Uint8Array(Buffer.concat([head, length, text, Buffer.from(body)]));
}

test(".npy files of other orders and versions", () => {
  const fortran = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", [0, 3, 1, 4, 2, 5]);
  assert.deepEqual([...readNpy(fortran).data], [0, 1, 2, 3, 4, 5]);
  const big = npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", [1, 2, 255, 254], 2);
  assert.deepEqual([...readNpy(big).data], [258, -2]);
});

test("damaged .npy files are refused with a reason", () => {
  const sound = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  const cases = [
    [new Uint8Array(3), /no \.npy/], [new TextEncoder().encode("PK\x03\x04 a zip file, not an array"), /no \.npy/],
    [npy(sound, [1, 2, 3]), /needs 8 bytes, 3 are there/], [npy(sound.replace("<f4", "<c8"), []), /'<c8'/],
    [npy("{'descr': [('a', '<f4')], }", []), /no plain array/], [npy("{'descr': '<f4'}", []), /header/],
    [npy(sound, [0, 0, 0, 0, 0, 0, 0, 0]).subarray(0, 20), /cut short in its header/],
    [npy(sound.replace("(2,)", "(99999999, 99999999, 99999999)"), [0]), /cut short/],
  ];
  for (const [bytes, pattern] of cases) assert.throws(() => readNpy(bytes), pattern);
});

test("typed numbers", () => {
  assert.deepEqual([...parseNumbers("[[1, 2], [3.5; -4e1]]", "f32", [2, 2]).data], [1, 2, 3.5, -40]);
  assert.deepEqual([...parseNumbers("7", "i64", [3]).data], [7n, 7n, 7n]);
  assert.deepEqual([...parseNumbers("true false", "bool", [2]).data], [1, 0]);
  assert.deepEqual([...parseNumbers("300 -300", "i8", [2]).data], [127, -128]);
  assert.throws(() => parseNumbers("1 2", "f32", [3]), /3 numbers are needed for \[3\], or one for all of them; 2 are given/);
  assert.throws(() => parseNumbers("one", "f32", [1]), /'one' is no number/);
  assert.throws(() => parseNumbers("nan", "i64", [1]), /'nan' is no i64/);
});

test("shapes of pictures", () => {
  assert.deepEqual(images.imageShape([1, 3, 224, 160]), { layout: "NCHW", channels: 3, height: 224, width: 160 });
  assert.deepEqual(images.imageShape([28, 28, 1]), { layout: "NHWC", channels: 1, height: 28, width: 28 });
  for (const dims of [[2, 3, 8, 8], [1, 5, 8, 8], [3], [1, 1000], [1, 3, 2, 2]]) assert.equal(images.imageShape(dims), null);
});

test("pictures become tensors", () => {
  const [height, width] = [5, 6];
  const rgba = Uint8ClampedArray.from({ length: height * width * 4 }, (_, i) => (i % 4 === 3 ? 255 : (i * 7) % 256));
  const options = { normalisation: "unit", order: "rgb", fit: "cover" };
  const planar = images.pixelsToTensor(rgba, [1, 3, height, width], "f32", options);
  const packed = images.pixelsToTensor(rgba, [1, height, width, 3], "f32", { ...options, order: "bgr" });
  for (let pixel = 0; pixel < height * width; pixel++) {
    for (let c = 0; c < 3; c++) {
      const expected = Math.fround(rgba[pixel * 4 + c] / 255);
      assert.equal(planar.data[c * height * width + pixel], expected);
      assert.equal(packed.data[pixel * 3 + 2 - c], expected);
    }
  }
  const normal = images.pixelsToTensor(rgba, [3, height, width], "f32", { ...options, normalisation: "imagenet" });
  assert.ok(Math.abs(normal.data[height * width] - (rgba[1] / 255 - 0.456) / 0.224) < 1e-6);
  const bytes = images.pixelsToTensor(rgba, [1, 1, height, width], "u8", { ...options, normalisation: "bytes" });
  assert.equal(bytes.data[0], Math.round(0.299 * rgba[0] + 0.587 * rgba[1] + 0.114 * rgba[2]));
  const back = images.tensorToPixels(planar, images.guessRange(0, 1), 0, 1);
  assert.deepEqual(back, rgba);
});

test("fits of pictures", () => {
  const target = { width: 100, height: 100 };
  assert.deepEqual(images.fitRect({ width: 200, height: 100 }, target, "cover"), { x: -50, y: 0, width: 200, height: 100 });
  assert.deepEqual(images.fitRect({ width: 200, height: 100 }, target, "contain"), { x: 0, y: 25, width: 100, height: 50 });
  assert.deepEqual(images.fitRect({ width: 200, height: 100 }, target, "stretch"), { x: 0, y: 0, width: 100, height: 100 });
});

test("statistics", () => {
  const tensor = { dtype: "f32", dims: [6], data: new Float32Array([1, 2, 3, 4, NaN, Infinity]) };
  const found = statisticsOf(tensor, 4);
  assert.deepEqual([found.min, found.max, found.mean, found.nan, found.infinite], [1, 4, 2.5, 1, 1]);
  assert.ok(Math.abs(found.deviation - Math.sqrt(1.25)) < 1e-12);
  assert.deepEqual(found.histogram, [1, 1, 1, 1]);
  assert.ok(Number.isNaN(statisticsOf({ dtype: "f32", dims: [0], data: new Float32Array(0) }).mean));
  assert.equal(statisticsOf({ dtype: "f32", dims: [2], data: new Float32Array([5, 5]) }, 4).histogram[0], 2);
});

test("the greatest scores, with their shares", () => {
  const scores = { dtype: "f32", dims: [1, 5], data: new Float32Array([0, 3, NaN, 1, 3]) };
  const top = rank(scores, 3);
  assert.deepEqual(top.map((t) => t.index), [1, 4, 3]);
  const total = 1 + 2 * Math.exp(3) + Math.E;
  assert.ok(Math.abs(top[0].share - Math.exp(3) / total) < 1e-9);
  const shares = { dtype: "f32", dims: [3], data: new Float32Array([0.25, 0.25, 0.5]) };
  assert.equal(rank(shares, 1)[0].share, 0.5);
  assert.ok(isScores([1, 1000]) && isScores([10]) && !isScores([2, 10]) && !isScores([1]));
});

test("labels", () => {
  assert.deepEqual(parseLabels("cat\r\ndog\n"), ["cat", "dog"]);
  assert.deepEqual(parseLabels('["cat", "dog"]'), ["cat", "dog"]);
  assert.deepEqual(parseLabels('{"0": ["n01", "cat"], "2": "dog", "x": "y"}'), ["cat", "", "dog"]);
  assert.throws(() => parseLabels("{broken"));
});

test("elements change their type", () => {
  const bytes = { dtype: "u8", dims: [2], data: new Uint8Array([0, 7]) };
  assert.equal(convertTensor(bytes, "bool").dtype, "bool");
  assert.deepEqual([...convertTensor(bytes, "i64").data], [0n, 7n]);
  assert.deepEqual([...convertTensor({ dtype: "f32", dims: [2], data: new Float32Array([1.5, -0.4]) }, "i32").data], [2, 0]);
});

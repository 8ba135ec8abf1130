// Pictures and .npy files for tests. SPDX-License-Identifier: BSD-3-Clause
import { crc32, deflateSync } from "node:zlib";

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

/** A PNG of 8-bit RGB; `color(x, y)` gives the three. */
export function png(width, height, color) {
  const rows = Buffer.alloc(height * (1 + 3 * width));
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rows.set(color(x, y), y * (1 + 3 * width) + 1 + 3 * x);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

/** A .npy file of 32-bit floats. */
export function npy(dims, bytes) {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${dims.join(", ")}${dims.length === 1 ? "," : ""}), }`;
  const header = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + "\n";
  return Buffer.concat([Buffer.from("\x93NUMPY\x01\x00", "latin1"), Buffer.from([header.length & 255, header.length >> 8]), Buffer.from(header, "latin1"), bytes]);
}

/** The 32-bit floats of a .npy file. */
export function floatsOf(file) {
  if (!/'descr': '<f4'/.test(file.toString("latin1", 10, 200))) throw new Error("not 32-bit floats");
  const start = 10 + file.readUInt16LE(8);
  return new Float32Array(file.buffer.slice(file.byteOffset + start, file.byteOffset + file.length));
}

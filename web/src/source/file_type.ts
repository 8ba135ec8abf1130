// Files that are often taken for a model and are none, by their first bytes. SPDX-License-Identifier: BSD-3-Clause
import type { ByteSource } from "../byte_source.js";
import { PteryxError } from "../errors.js";

const kRead = 64;

/** What begins like that; bytes as Latin-1. */
const kTypes: readonly (readonly [RegExp, string])[] = [
  [/^\s*<(!doctype\s+html|html|head|\?xml)/i, "a web page"],
  [/^version https:\/\/git-lfs/, "a Git LFS pointer: the file itself was not fetched"],
  [/^\x89PNG\r\n/, "a PNG picture"],
  [/^\xff\xd8\xff/, "a JPEG picture"],
  [/^GIF8|^RIFF[^]{4}WEBP/, "a picture"],
  [/^PK\x03\x04/, "a ZIP archive, such as PyTorch's .pt files are: export the model with ExecuTorch first"],
  [/^\x1f\x8b/, "compressed by gzip: unpack it first"],
  [/^%PDF-/, "a PDF document"],
  [/^[^]{6}\0\0\{"/, "a safetensors file: convert it with pteryx convert first"],
];

/** Whether it is a GGUF file, which is to be converted. */
export async function isGguf(source: ByteSource): Promise<boolean> {
  const bytes = await source.read(0, Math.min(4, source.size));
  return String.fromCharCode(...bytes) === "GGUF";
}

/** Rejects with `invalid-program` where the file is known to be something else. */
export async function checkFileType(source: ByteSource): Promise<void> {
  const bytes = await source.read(0, Math.min(kRead, source.size));
  const text = String.fromCharCode(...bytes);
  const found = kTypes.find(([begins]) => begins.test(text));
  if (found) throw new PteryxError("invalid-program", `${source.name}: expected a model (.pte or .gguf), got ${found[1]}`);
}

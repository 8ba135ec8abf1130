// Bytes that are asked for by position and come later. SPDX-License-Identifier: BSD-3-Clause

export interface ByteSource {
  /** For messages: the address, or the name of the file. */
  readonly name: string;
  readonly size: number;
  /** All of [offset, offset + size), which lies inside. Rejects with a `PteryxError`. The result is the caller's to keep. */
  read(offset: number, size: number): Promise<Uint8Array>;
  /** All of it will be read from now on, mostly in order. */
  beginDownload?(): void;
  close(): void;
}

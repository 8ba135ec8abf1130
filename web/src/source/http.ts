// Requests for parts of a file on a server, and what the answers say. SPDX-License-Identifier: BSD-3-Clause
import { PteryxError } from "../errors.js";
import { cancelled, sleep, throwIfAborted } from "./cancel.js";

/** What a server says of a file's version. */
export interface Version {
  readonly etag: string;
  readonly modified: string;
}

/** How often a broken connection is taken up again, without bytes in between. */
export interface RetryOptions {
  readonly tries: number;
  /** Before the first retry; doubles each time. */
  readonly delayMs: number;
  /** A connection without bytes for so long counts as broken. */
  readonly stallMs: number;
}
export const kRetry: RetryOptions = { tries: 5, delayMs: 250, stallMs: 30_000 };

/** An answer whose body begins at `start` of the file. */
export interface Answer {
  readonly body: ReadableStreamDefaultReader<Uint8Array>;
  readonly start: number;
  /** Of the whole file; `undefined` where the server does not say, or says the size of something compressed. */
  readonly total: number | undefined;
  /** Parts can be asked for. */
  readonly ranges: boolean;
  /** No part was asked for. */
  readonly plain: boolean;
  readonly version: Version;
}

/** The file at the address is not the one that was there before. */
export class ChangedError extends PteryxError {
  constructor(url: string, what: string) {
    super("io", `${url}: the file changed on the server while it was being loaded (${what}). Load it again`);
  }
}

/** Of the two only what both answers have is compared: other origins may hide an ETag. */
export function sameVersion(a: Version, b: Version): boolean {
  if (a.etag && b.etag) return a.etag === b.etag;
  return !(a.modified && b.modified) || a.modified === b.modified;
}

/** Of one version of what is at an address; empty where nothing tells it from others. */
export function versionIdentity(url: string, { etag, modified }: Version, size: number | string, sha256 = ""): string {
  const version = etag || modified || sha256;
  return version === "" ? "" : `url:${url}:${version}:${size}`;
}

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** Asks for the whole. */
  readonly plain?: boolean;
  /** Until the answer begins. */
  readonly timeoutMs: number;
}

/**
 * Asks for [from, to), or everything from `from` on. `from` and the open end keep the header within what other origins may be asked without a
 * preflight, which conditional headers are not: versions are compared here instead. Rejects with `http`, `network`, `invalid-program` or `cancelled`.
 */
export async function request(url: string, from: number, to: number | undefined, options: RequestOptions): Promise<Answer> {
  const { signal, plain = false, timeoutMs } = options;
  throwIfAborted(url, signal);
  const end = new AbortController();
  const abort = (): void => end.abort();
  const timer = setTimeout(abort, timeoutMs);
  signal?.addEventListener("abort", abort); // for as long as the body is read
  let response: Response;
  try {
    const headers: Record<string, string> = plain ? {} : { Range: `bytes=${from}-${to === undefined ? "" : to - 1}` };
    response = await fetch(url, { headers, cache: "no-store", signal: end.signal });
  } catch (cause) {
    if (signal?.aborted) throw cancelled(url, signal);
    if (end.signal.aborted) throw new PteryxError("network", `${url}: no answer within ${timeoutMs / 1000} s`, { cause });
    throw unreachable(url, cause);
  } finally {
    clearTimeout(timer);
  }
  try {
    return checkResponse(url, response, from, plain);
  } catch (error) {
    response.body?.cancel().catch(() => undefined);
    throw error;
  }
}

function unreachable(url: string, cause: unknown): PteryxError {
  if (globalThis.navigator?.onLine === false) return new PteryxError("network", `${url}: this device is offline`, { cause });
  const foreign = typeof globalThis.origin === "string" && new URL(url).origin !== globalThis.origin;
  const why = foreign ? "the server cannot be reached, or does not allow pages of other origins (CORS)" : "the server cannot be reached";
  return new PteryxError("network", `${url}: ${why}`, { cause });
}

/** The server's answer is an error; `status` is its number. */
export class HttpError extends PteryxError {
  constructor(url: string, readonly status: number, text: string) {
    super("http", `${url}: the server answered ${status}${text ? ` ${text}` : ""}`);
  }
}

function checkResponse(url: string, response: Response, from: number, plain: boolean): Answer {
  if (response.status !== 200 && response.status !== 206) throw new HttpError(url, response.status, response.statusText);
  const type = response.headers.get("Content-Type") ?? "";
  if (/^\s*text\/html\b/i.test(type)) throw new PteryxError("invalid-program", `${url}: is a web page (${type}), not a model`);
  if (!response.body) throw new PteryxError("network", `${url}: the answer has no body`);
  const encoding = response.headers.get("Content-Encoding");
  const compressed = encoding !== null && encoding !== "" && encoding !== "identity";
  const partial = response.status === 206;
  // A part of compressed data cannot be decoded by itself; from the start it is the whole.
  if (compressed && partial && from > 0) throw new HttpError(url, 206, `with Content-Encoding ${encoding}, of which no part can be used`);
  const length = compressed ? undefined : parseLength(response.headers.get("Content-Length"));
  const range = partial && !compressed ? parseContentRange(url, response.headers.get("Content-Range"), from) : undefined;
  const start = partial ? from : 0;
  const ranges = !compressed && !plain && (partial || /\bbytes\b/.test(response.headers.get("Accept-Ranges") ?? ""));
  return {
    body: response.body.getReader(), start, ranges, plain, total: range ?? (length === undefined ? undefined : start + length),
    version: { etag: response.headers.get("ETag") ?? "", modified: response.headers.get("Last-Modified") ?? "" },
  };
}

function parseLength(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** The size of the whole file, where the header can be read and says it. */
function parseContentRange(url: string, header: string | null, from: number): number | undefined {
  const match = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(header ?? "");
  if (!match) return undefined;
  if (Number(match[1]) !== from) throw new PteryxError("network", `${url}: the server sent bytes from ${match[1]} on, expected ${from}`);
  return parseLength(match[2]!);
}

/** A file on a server whose version and size are known. */
export interface Remote {
  readonly url: string;
  readonly size: number;
  readonly version: Version;
  readonly ranges: boolean;
  /** Parts are not asked for: browsers refuse what a server compresses all the same. */
  readonly plain: boolean;
  readonly retry: RetryOptions;
}

/** Whether another try may help. */
function worthRetrying(error: unknown): boolean {
  if (error instanceof HttpError) return error.status === 408 || error.status === 429 || error.status >= 500;
  return error instanceof PteryxError && error.code === "network";
}

/** Bytes of a remote file in order, from `position` to `end`, over as many connections as it takes. */
export class HttpStream {
  #answer: Answer | undefined;
  #skip = 0;
  #failures = 0;
  #sinceFailure = 0;

  /** `answer`: one that is there already and whose body is at or before `position`. */
  constructor(readonly remote: Remote, public position: number, readonly end: number, readonly signal: AbortSignal, answer?: Answer) {
    if (answer) this.#take(answer);
  }

  /** The next bytes, at least one; `position` moves on. */
  async next(): Promise<Uint8Array> {
    for (;;) {
      throwIfAborted(this.remote.url, this.signal);
      try {
        const bytes = await this.#some();
        this.position += bytes.length;
        this.#sinceFailure += bytes.length;
        return bytes;
      } catch (error) {
        this.close();
        if (this.signal.aborted) throw cancelled(this.remote.url, this.signal);
        await this.#pause(error);
      }
    }
  }

  close(): void {
    this.#answer?.body.cancel().catch(() => undefined);
    this.#answer = undefined;
  }

  async #some(): Promise<Uint8Array> {
    if (!this.#answer) await this.#connect();
    for (;;) {
      const bytes = await this.#chunk(this.#answer!);
      if (bytes.length <= this.#skip) {
        this.#skip -= bytes.length;
        continue;
      }
      const left = this.end - this.position;
      if (this.end === this.remote.size && bytes.length - this.#skip > left) throw tooLong(this.remote);
      const wanted = bytes.subarray(this.#skip, this.#skip + left);
      this.#skip = 0;
      return wanted;
    }
  }

  async #chunk(answer: Answer): Promise<Uint8Array> {
    const { url, size, retry } = this.remote;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stalled = new Promise<never>((_, reject) => {
      const seconds = Math.round(retry.stallMs / 1000);
      timer = setTimeout(() => reject(new PteryxError("network", `${url}: no data for ${seconds} s at byte ${this.position} of ${size}`)), retry.stallMs);
    });
    try {
      const { done, value } = await Promise.race([answer.body.read(), stalled]);
      if (done) throw new PteryxError("network", `${url}: ended at byte ${this.position} of ${size}`);
      return value;
    } catch (cause) {
      if (cause instanceof PteryxError) throw cause;
      throw new PteryxError("network", `${url}: the connection broke off at byte ${this.position} of ${size}`, { cause });
    } finally {
      clearTimeout(timer);
    }
  }

  async #connect(): Promise<void> {
    const { url, size, version, ranges, plain, retry } = this.remote;
    const whole = !ranges || this.end === size;
    const options = { signal: this.signal, plain, timeoutMs: retry.stallMs };
    const answer = await request(url, this.position, whole ? undefined : this.end, options).catch((error: unknown) => {
      throw error instanceof HttpError && error.status === 416 ? new ChangedError(url, `it ends before byte ${this.position}`) : error;
    });
    const other = !sameVersion(version, answer.version);
    // An answer to a closed range has a total only where the header that says it can be read.
    const otherSize = answer.total !== undefined && answer.total !== size && (whole || answer.total !== this.end);
    if (other || otherSize) {
      answer.body.cancel().catch(() => undefined);
      throw new ChangedError(url, other ? `version ${describe(answer.version)}, before ${describe(version)}` : `${answer.total} bytes, before ${size}`);
    }
    this.#take(answer);
  }

  #take(answer: Answer): void {
    this.#answer = answer;
    this.#skip = this.position - answer.start;
  }

  /** Waits before another try; rejects where there is none left. Some progress since the last failure gives all tries back. */
  async #pause(error: unknown): Promise<void> {
    if (this.#sinceFailure >= 256 * 1024) this.#failures = 0;
    this.#sinceFailure = 0;
    if (!worthRetrying(error) || this.#failures >= this.remote.retry.tries) throw error;
    await sleep(this.remote.retry.delayMs * 2 ** this.#failures++, this.signal);
  }
}

function tooLong(remote: Remote): PteryxError {
  return new PteryxError("io", `${remote.url}: the server sent more than the ${remote.size} bytes that it announced; it may compress the file`);
}

function describe(version: Version): string {
  return version.etag || version.modified;
}

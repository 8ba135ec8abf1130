// A real HTTP server on the loopback interface with ranges, validators and faults. SPDX-License-Identifier: BSD-3-Clause
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";

const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".json": "application/json",
  ".wasm": "application/wasm", ".svg": "image/svg+xml", ".png": "image/png",
};

/**
 * How a file is served. Everything can be changed between requests: `server.file("/m.pte").etag = '"2"'`.
 * @typedef {object} ServedFile
 * @property {Uint8Array} body
 * @property {string} [type] Content-Type; `application/octet-stream` unless told
 * @property {string | null} [etag] `null`: none
 * @property {string | null} [modified] Last-Modified; none unless told
 * @property {boolean} [ranges] `false`: every answer is the whole file
 * @property {"gzip" | "chunked"} [encoding] `gzip`: compressed; `chunked`: without a Content-Length; both without ranges
 * @property {boolean} [silent] never answers
 * @property {number} [status] answers with this status and no file
 * @property {number[]} [dropAfter] each answer takes one number off, and closes the connection after that many bytes of its body
 * @property {number} [stallAfter] after that many bytes of an answer's body nothing comes any more; once
 * @property {number} [bytesPerSecond] of each answer
 * @property {Record<string, string>} [headers] more headers
 */

/**
 * @typedef {object} TestServer
 * @property {string} origin `http://127.0.0.1:PORT`
 * @property {{ method: string, path: string, range: string | undefined, sent: number }[]} log every request, in order; `sent`: bytes of the body
 * @property {(path: string, file?: ServedFile) => ServedFile} file sets or gets how a path is served
 * @property {(path: string) => void} remove the path is answered with 404
 * @property {(path: string) => { method: string, path: string, range: string | undefined, sent: number }[]} requests those of one path
 * @property {() => void} clearLog
 * @property {(up: boolean) => Promise<void>} setOnline `false`: connections are refused until it is `true` again, on the same port
 * @property {() => Promise<void>} close
 */

/**
 * Starts a server on 127.0.0.1 and a free port.
 * @param {{ root?: string, headers?: Record<string, string> }} [options] `root`: a folder of plain files for paths that are not set with `file`;
 *   `headers`: for every answer, such as a CSP or `Access-Control-Allow-Origin`
 * @returns {Promise<TestServer>}
 */
export async function startServer(options = {}) {
  const files = new Map();
  const log = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    const entry = { method: request.method, path: url.pathname, range: request.headers.range, sent: 0 };
    log.push(entry);
    for (const [name, value] of Object.entries(options.headers ?? {})) response.setHeader(name, value);
    response.on("error", () => {});
    const served = files.get(url.pathname);
    const answer = served ? sendFile(request, response, served, entry) : sendFromRoot(request, response, options.root, url.pathname, entry);
    answer.catch(() => response.destroy());
  });
  const listen = (port) => new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const stop = () => new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
  await listen(0);
  const { port } = server.address();
  return {
    origin: `http://127.0.0.1:${port}`,
    log,
    file(path, file) {
      if (file) files.set(path, file);
      return files.get(path);
    },
    remove: (path) => void files.delete(path),
    requests: (path) => log.filter((entry) => entry.path === path),
    clearLog: () => void (log.length = 0),
    setOnline: (up) => (up ? listen(port) : stop()),
    close: stop,
  };
}

/** The part [from, to) that a `Range` header asks for: `undefined` where there is none or it is not understood, `null` where it lies outside. */
function parseRange(header, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return undefined;
  const from = match[1] === "" ? Math.max(0, size - Number(match[2])) : Number(match[1]);
  const to = match[1] === "" || match[2] === "" ? size : Math.min(size, Number(match[2]) + 1);
  return from < to ? { from, to } : null;
}

async function sendFile(request, response, file, entry) {
  if (file.silent) return;
  if (file.status) {
    response.writeHead(file.status, { "Content-Type": "text/plain" }).end(`status ${file.status}`);
    return;
  }
  const headers = { "Content-Type": file.type ?? "application/octet-stream", ...file.headers };
  if (file.etag !== null) headers.ETag = file.etag ?? '"1"';
  if (file.modified) headers["Last-Modified"] = file.modified;
  let body = file.body;
  let status = 200;
  if (file.encoding === "gzip") {
    body = gzipSync(body);
    headers["Content-Encoding"] = "gzip";
  } else if (file.encoding !== "chunked" && file.ranges !== false) {
    headers["Accept-Ranges"] = "bytes";
    const range = parseRange(request.headers.range, body.length);
    if (range === null) {
      response.writeHead(416, { "Content-Range": `bytes */${body.length}` }).end();
      return;
    }
    if (range) {
      status = 206;
      headers["Content-Range"] = `bytes ${range.from}-${range.to - 1}/${body.length}`;
      body = body.subarray(range.from, range.to);
    }
  }
  if (file.encoding !== "chunked") headers["Content-Length"] = body.length;
  response.writeHead(status, headers);
  if (request.method === "HEAD") response.end();
  else await sendBody(response, file, body, entry);
}

async function sendBody(response, file, body, entry) {
  const end = Math.min(body.length, file.dropAfter?.shift() ?? body.length);
  const stall = file.stallAfter ?? Infinity;
  const part = file.bytesPerSecond ? Math.max(1024, Math.floor(file.bytesPerSecond / 50)) : 64 * 1024;
  for (let at = 0; at < end && !response.destroyed; at += part) {
    if (at >= stall) {
      delete file.stallAfter;
      return;
    }
    const bytes = body.subarray(at, Math.min(end, at + part));
    entry.sent += bytes.length;
    if (!response.write(bytes)) await drained(response);
    if (file.bytesPerSecond) await sleep((bytes.length / file.bytesPerSecond) * 1000);
  }
  if (end === body.length) return void response.end();
  do await sleep(10);
  while (response.writableLength > 0 && !response.destroyed);
  response.destroy();
}

/** Resolves when the client has taken what was written, or is gone. */
function drained(response) {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}

async function sendFromRoot(request, response, root, path, entry) {
  const file = root === undefined ? undefined : join(root, normalize(decodeURIComponent(path.endsWith("/") ? `${path}index.html` : path)));
  const info = file?.startsWith(root.endsWith(sep) ? root : root + sep) ? await stat(file).catch(() => undefined) : undefined;
  if (!info?.isFile()) {
    response.writeHead(404, { "Content-Type": "text/plain" }).end("not found");
    return;
  }
  const headers = {
    "Content-Type": TYPES[extname(file)] ?? "application/octet-stream", "Accept-Ranges": "bytes",
    ETag: `"${info.size}-${info.mtimeMs}"`, "Last-Modified": info.mtime.toUTCString(),
  };
  const range = parseRange(request.headers.range, info.size);
  if (range === null) {
    response.writeHead(416, { "Content-Range": `bytes */${info.size}` }).end();
    return;
  }
  const { from, to } = range ?? { from: 0, to: info.size };
  headers["Content-Length"] = to - from;
  if (range) headers["Content-Range"] = `bytes ${from}-${to - 1}/${info.size}`;
  response.writeHead(range ? 206 : 200, headers);
  if (request.method === "HEAD" || from === to) return void response.end();
  createReadStream(file, { start: from, end: to - 1 }).on("data", (bytes) => (entry.sent += bytes.length)).on("error", () => response.destroy()).pipe(response);
}

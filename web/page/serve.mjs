// node web/page/serve.mjs [--port N] [--plain] [FOLDER]: serves the built page on localhost. SPDX-License-Identifier: BSD-3-Clause
// Answers are cross-origin isolated unless --plain is given, so that the CPU kernels can use threads.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname, extname, join, normalize, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const kTypes = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".wasm": "application/wasm",
  ".svg": "image/svg+xml", ".json": "application/json", ".map": "application/json", ".png": "image/png",
};
const kIsolation = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp", "Cross-Origin-Resource-Policy": "same-origin" };

/** The part of a file that a Range header asks for: `null` for none, `undefined` for one that cannot be had. */
export function parseRange(header, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return null;
  const start = match[1] === "" ? Math.max(0, size - Number(match[2])) : Number(match[1]);
  const end = match[1] !== "" && match[2] !== "" ? Math.min(size - 1, Number(match[2])) : size - 1;
  return start <= end ? { start, end } : undefined;
}

/** @returns {Promise<{ origin: string, close: () => Promise<void> }>} */
export async function servePage({ folder, port = 0, isolated = true }) {
  const root = resolve(folder);
  const server = createServer(async (request, response) => {
    try {
      await answer(request, response, root, isolated);
    } catch {
      response.destroy();
    }
  });
  await new Promise((done, fail) => server.once("error", fail).listen(port, "127.0.0.1", done));
  return { origin: `http://localhost:${server.address().port}`, close: () => new Promise((done) => server.close(done).closeAllConnections()) };
}

async function answer(request, response, root, isolated) {
  const refuse = (status, text) => response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8" }).end(`${text}\n`);
  if (request.method !== "GET" && request.method !== "HEAD") return refuse(405, "only GET and HEAD");
  let path;
  try {
    path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
  } catch {
    return refuse(400, "not an address");
  }
  const file = join(root, normalize(path.endsWith("/") ? `${path}index.html` : path));
  const info = file.startsWith(root + sep) && !path.includes("\0") ? await stat(file).catch(() => null) : null;
  if (!info?.isFile()) return refuse(404, "not found");
  const etag = `"${info.size.toString(16)}-${Math.round(info.mtimeMs).toString(16)}"`;
  const headers = {
    "Content-Type": kTypes[extname(file)] ?? "application/octet-stream", "Accept-Ranges": "bytes", "Cache-Control": "no-cache", ETag: etag,
    "X-Content-Type-Options": "nosniff", ...(isolated ? kIsolation : {}),
  };
  if (request.headers["if-none-match"] === etag) return response.writeHead(304, headers).end();
  const range = parseRange(request.headers.range, info.size);
  if (range === undefined) return response.writeHead(416, { ...headers, "Content-Range": `bytes */${info.size}` }).end();
  const { start, end } = range ?? { start: 0, end: info.size - 1 };
  headers["Content-Length"] = end - start + 1;
  if (range) headers["Content-Range"] = `bytes ${start}-${end}/${info.size}`;
  response.writeHead(range ? 206 : 200, headers);
  if (request.method === "HEAD" || end < start) response.end();
  else createReadStream(file, { start, end }).on("error", () => response.destroy()).pipe(response);
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { values, positionals } = parseArgs({ options: { port: { type: "string", default: "8080" }, plain: { type: "boolean", default: false } }, allowPositionals: true });
  const folder = positionals[0] ?? join(dirname(fileURLToPath(import.meta.url)), "dist");
  try {
    const { origin } = await servePage({ folder, port: Number(values.port), isolated: !values.plain });
    console.log(`${folder} is at ${origin}/ (Ctrl+C ends)`);
  } catch (error) {
    if (error.code !== "EADDRINUSE") throw error;
    console.error(`port ${values.port} is in use: --port takes another one`);
    process.exitCode = 1;
  }
}

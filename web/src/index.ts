// Pteryx: PyTorch models exported by ExecuTorch, and language models, through WebGPU. SPDX-License-Identifier: BSD-3-Clause
export { PteryxError, type ErrorCode } from "./errors.js";
export { inspectProgram, loadModel, loadProgram } from "./load.js";
export { cache, type Cache, type CacheEntry, type CacheKind } from "./source/index.js";
export type * from "./types.js";

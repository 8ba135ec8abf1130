// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/native/blocking.h"

#include <optional>
#include <utility>
#include <vector>

#include "pteryx/gpu/device.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/program/native/files.h"

namespace pteryx {

Result<Files> open_files(const std::string& path, LoadOptions& options) {
  Files files;
  PTERYX_ASSIGN(files.program, map_source(path));
  PTERYX_ASSIGN(files.data, program::map_files(options.data_files));
  if (options.device == nullptr) {
    if (options.progress && !options.progress("opening the GPU", 0, 0))
      return Status(Code::kCancelled, "load cancelled while opening the GPU");
    PTERYX_ASSIGN(options.device, gpu::open_gpu_or_cpu());
  }
  return files;
}

Result<Session> Session::load(const std::string& path, const LoadOptions& options) {
  LoadOptions opened = options;
  PTERYX_ASSIGN(const Files files, open_files(path, opened));
  SessionLoad load(files.program, files.data, opened);
  PTERYX_TRY(gpu::finish(*opened.device, load));
  return load.take();
}

Result<std::span<const Value>> Session::run(std::string_view method, std::span<const Value> inputs,
                                            const RunOptions& options) {
  PTERYX_ASSIGN(Run run, start(method, inputs, options));
  PTERYX_TRY(gpu::finish(*device(), run));
  return run.outputs();
}

namespace blocking {

Status load(exec::Method& method, gpu::Device& device) { return gpu::finish(device, method); }

Result<std::span<const Value>> run(exec::Method& method, gpu::Device& device,
                                   std::span<const Value> inputs) {
  PTERYX_ASSIGN([[maybe_unused]] const uint64_t number,
                method.runner().begin({.inputs = inputs, .state = &method.states().state()}));
  PTERYX_TRY(gpu::finish(device, method.runner()));
  return method.runner().outputs();
}

Status feed(Steps& steps, std::span<const TokenId> tokens, int64_t position) {
  PTERYX_TRY(steps.feed(tokens, position));
  return gpu::finish(steps.device(), steps);
}

Status start(Steps& steps, std::span<const TokenId> tokens, int64_t position) {
  PTERYX_TRY(steps.start(tokens, position));
  return gpu::finish(steps.device(), steps);
}

Status start_next(Steps& steps, int64_t position) {
  PTERYX_TRY(steps.start_next(position));
  return gpu::finish(steps.device(), steps);
}

Result<TokenId> take(Steps& steps) {
  std::optional<TokenId> token;
  PTERYX_TRY(gpu::wait_until(steps.device(), [&]() -> Result<bool> {
    PTERYX_ASSIGN(token, steps.take());
    return token.has_value();
  }));
  return *token;
}

Result<Steps::Drawn> run(Steps& steps, std::span<const TokenId> tokens, int64_t position) {
  PTERYX_TRY(steps.run(tokens, position));
  PTERYX_TRY(gpu::finish(steps.device(), steps));
  return steps.drawn();
}

}  // namespace blocking
}  // namespace pteryx

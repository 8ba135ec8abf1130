// Jobs of a session to their end, for those who may wait.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pteryx/pteryx.h"
#include "pteryx/session/exec/method.h"
#include "pteryx/session/steps.h"

namespace pteryx {

// What a program is loaded from.
struct Files {
  SourcePtr program;
  std::vector<SourcePtr> data;  // LoadOptions::data_files
};
// Opens them, and a device where the options have none. Errors: kIo, kDevice, kCancelled.
Result<Files> open_files(const std::string& path, LoadOptions& options);

namespace blocking {

Status load(exec::Method& method, gpu::Device& device);
Result<std::span<const Value>> run(exec::Method& method, gpu::Device& device,
                                   std::span<const Value> inputs);

// As the functions of Steps that they are named for.
Status feed(Steps& steps, std::span<const TokenId> tokens, int64_t position);
Status start(Steps& steps, std::span<const TokenId> tokens, int64_t position);
Status start_next(Steps& steps, int64_t position);
Result<TokenId> take(Steps& steps);
Result<Steps::Drawn> run(Steps& steps, std::span<const TokenId> tokens, int64_t position);

}  // namespace blocking
}  // namespace pteryx

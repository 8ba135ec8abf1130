// Status helpers. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace pteryx {

std::string_view name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidProgram: return "invalid program";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kUnsupported: return "unsupported";
    case Code::kDevice: return "device error";
    case Code::kMemory: return "out of memory";
    case Code::kIo: return "i/o error";
    case Code::kCancelled: return "cancelled";
  }
  return "unknown";
}

Status&& Status::during(std::string_view what) && {
  if (error_ != nullptr) {
    error_->message += "\n  while ";
    error_->message += what;
  }
  return std::move(*this);
}

Status invalid_program(std::string message) { return {Code::kInvalidProgram, std::move(message)}; }
Status invalid_argument(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}
Status unsupported(std::string message) { return {Code::kUnsupported, std::move(message)}; }
Status device_error(std::string message) { return {Code::kDevice, std::move(message)}; }
Status memory_error(std::string message) { return {Code::kMemory, std::move(message)}; }
Status io_error(std::string message) { return {Code::kIo, std::move(message)}; }

void dcheck_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace pteryx

// Status and Result<T>: how every fallible call of Pteryx answers. No exceptions anywhere in the
// library.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace pteryx {

// Whose fault it is.
enum class Code : uint8_t {
  kOk,
  kInvalidProgram,   // the file
  kInvalidArgument,  // the caller
  kUnsupported,      // us, so far
  kDevice,           // the GPU, its driver or the WebGPU library
  kMemory,           // not enough memory, or over the caller's limit
  kIo,               // the operating system
  kCancelled,        // the caller said stop
};

std::string_view name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // ok, no allocation
  Status(Code code, std::string message)
      : error_(std::make_unique<Error>(code, std::move(message))) {}

  bool ok() const { return error_ == nullptr; }
  Code code() const { return error_ == nullptr ? Code::kOk : error_->code; }
  std::string_view message() const {
    return error_ == nullptr ? std::string_view() : std::string_view(error_->message);
  }

  // Adds a "  while ..." line: what the caller was doing.
  Status&& during(std::string_view what) &&;

 private:
  struct Error {
    Error(Code c, std::string m) : code(c), message(std::move(m)) {}
    Code code;
    std::string message;
  };
  std::unique_ptr<Error> error_;
};

inline Status ok_status() { return {}; }
Status invalid_program(std::string message);
Status invalid_argument(std::string message);
Status unsupported(std::string message);
Status device_error(std::string message);
Status memory_error(std::string message);
Status io_error(std::string message);

// An optional beside the error, not a variant of both: each is moved and destroyed by code that is
// there anyway, which makes a module for the web 2 % smaller.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {}  // NOLINT

  bool ok() const { return value_.has_value(); }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }

  // The error; ok() must be false.
  Status status() && { return std::move(status_); }
  const Status& status() const& { return status_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace pteryx

#define PTERYX_TRY(expr)                                                  \
  do {                                                                    \
    if (::pteryx::Status pteryx_status_ = (expr); !pteryx_status_.ok()) { \
      return pteryx_status_;                                              \
    }                                                                     \
  } while (false)

#define PTERYX_CONCAT_(a, b) a##b
#define PTERYX_CONCAT(a, b) PTERYX_CONCAT_(a, b)
#define PTERYX_ASSIGN(decl, expr) \
  PTERYX_ASSIGN_(PTERYX_CONCAT(pteryx_result_, __LINE__), decl, expr)
#define PTERYX_ASSIGN_(tmp, decl, expr)          \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  decl = std::move(tmp).value()

// For our own bugs only; never for file, caller or device.
#ifdef NDEBUG
#define PTERYX_DCHECK(cond) ((void)sizeof(cond))
#else
#define PTERYX_DCHECK(cond) ((cond) ? (void)0 : ::pteryx::dcheck_failed(#cond, __FILE__, __LINE__))
#endif

namespace pteryx {
[[noreturn]] void dcheck_failed(const char* condition, const char* file, int line);
}  // namespace pteryx

// What the exported functions of all modules share. A call gives a number: a handle, or 1 for done,
// 0 for later and -1 for failed; what it says beyond that is in result(), as JSON or bytes. Of a
// failure that is {"code", "message"}.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/json.h"
#include "pteryx/base/source.h"
#include "pteryx/base/status.h"
#include "pteryx/gpu/slots.h"

#define PTERYX_EXPORT(name) extern "C" __attribute__((export_name(#name)))

namespace pteryx::web {

enum class Handle : uint32_t { kNone = 0 };

// Objects that the script holds by number.
template <typename T>
class Table {
 public:
  Handle add(std::unique_ptr<T> object) { return slots_.insert(std::move(object)); }
  T* find(Handle handle) {
    std::unique_ptr<T>* const slot = slots_.find(handle);
    return slot == nullptr ? nullptr : slot->get();
  }
  void erase(Handle handle) { slots_.erase(handle); }

 private:
  gpu::Slots<Handle, std::unique_ptr<T>> slots_;
};

constexpr int32_t kFailed = -1;
constexpr int32_t kLater = 0;
constexpr int32_t kDone = 1;

// What result() is from now on. Each gives the number that the call returns.
int32_t give(const Json& json);
int32_t give(Bytes bytes);
int32_t fail(const Status& status);
int32_t fail_handle(std::string_view what);  // there is no such object
inline int32_t done() { return kDone; }
inline int32_t give(const Status& status) { return status.ok() ? done() : fail(status); }
inline int32_t give(Handle handle) {
  return handle == Handle::kNone ? fail(memory_error("there are no handles left"))
                                 : static_cast<int32_t>(handle);
}

// A text in the module's memory.
struct Text {
  const char* data;
  size_t size;
  operator std::string_view() const { return {data, size}; }  // NOLINT: implicit by design
};

// Sources that the script describes as [{"id", "name", "size"}, ...].
Result<SourcePtr> read_source(const Json& description);
Result<std::vector<SourcePtr>> read_sources(const Json& list);

// Members of an object that may be left out; numbers that do not fit become the nearest that do.
void take(const Json& j, std::string_view name, bool& value);
void take(const Json& j, std::string_view name, std::string& value);
void take(const Json& j, std::string_view name, double& value);
void take(const Json& j, std::string_view name, float& value);
void take(const Json& j, std::string_view name, uint64_t& value);
void take(const Json& j, std::string_view name, int64_t& value);

template <std::integral T>
void take(const Json& j, std::string_view name, T& value) {
  auto wide = static_cast<std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(value);
  take(j, name, wide);
  using Limits = std::numeric_limits<T>;
  value = static_cast<T>(std::clamp<decltype(wide)>(wide, Limits::min(), Limits::max()));
}

// Of an array; none of anything else.
std::span<const Json> elements(const Json& j);

}  // namespace pteryx::web

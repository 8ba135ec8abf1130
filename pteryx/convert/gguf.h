// GGUF files, versions 2 and 3: metadata and tensors. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/source.h"

namespace pteryx::convert {

// An array of metadata; strings point into the file.
struct GgufArray {
  std::vector<std::string_view> strings;
  std::vector<double> numbers;
};
using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;

// Views point into the bytes it was parsed from.
class GgufFile {
 public:
  // Errors: kInvalidProgram, kUnsupported (other versions, big-endian files).
  static Result<GgufFile> parse(Bytes file);

  const GgufValue* find(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key) const;  // also a bool
  std::optional<double> number(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  const GgufArray* array(std::string_view key) const;

  const Checkpoint& tensors() const { return checkpoint_; }
  Checkpoint take_tensors() && { return std::move(checkpoint_); }

 private:
  std::map<std::string, GgufValue, std::less<>> metadata_;
  Checkpoint checkpoint_;
};

}  // namespace pteryx::convert

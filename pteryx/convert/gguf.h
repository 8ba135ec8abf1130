// GGUF files, versions 2 and 3: metadata and tensors. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/checkpoint.h"

namespace pteryx::convert {

using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string,
                               std::vector<std::string>, std::vector<double>>;

// Where a file stands among the parts of a split model.
struct GgufSplit {
  int64_t part = 0;     // counts from 0
  int64_t parts = 1;    // 1: the file is the whole model
  int64_t tensors = 0;  // of all parts together
};

class GgufFile {
 public:
  // Reads the header; tensors stay where they are. Errors: kIo, kInvalidProgram, kUnsupported
  // (other versions, big-endian files).
  static Result<GgufFile> parse(const SourcePtr& file);

  bool has(std::string_view key) const { return metadata_.contains(key); }
  // Sets `out` if the key is there. Errors: kInvalidProgram for a value of another type.
  Status read(std::string_view key, int64_t& out) const;
  Status read(std::string_view key, double& out) const;  // also an integer
  Status read(std::string_view key, bool& out) const;    // also 0 or 1
  Status read(std::string_view key, std::string& out) const;
  Status read(std::string_view key, std::vector<std::string>& out) const;
  Status read(std::string_view key, std::vector<double>& out) const;
  // The same for keys that have to be there.
  template <typename T>
  Status require(std::string_view key, T& out) const {
    return has(key) ? read(key, out) : missing(key);
  }

  const std::string& name() const { return name_; }  // the source's
  const GgufSplit& split() const { return split_; }
  const Checkpoint& tensors() const { return checkpoint_; }
  Checkpoint take_tensors() { return std::move(checkpoint_); }

 private:
  const GgufValue* find(std::string_view key) const;
  template <typename T>
  Status read_as(std::string_view key, std::string_view expected, T& out) const;
  static Status missing(std::string_view key);

  std::string name_;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  GgufSplit split_;
  Checkpoint checkpoint_;
};

}  // namespace pteryx::convert

// A read-only memory-mapped file.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx {

class MappedFile {
 public:
  // Errors: kIo with the path and the system's reason. An empty file maps to an empty span.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  Bytes bytes() const { return bytes_; }  // page-aligned

 private:
  MappedFile() = default;
  Bytes bytes_;
};

}  // namespace pteryx

// Telling files apart by what they hold, without reading all of it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx::convert {

// Of a file: its size, its first megabytes (small files, and the headers of large ones, whole), and
// samples of the rest, end included. It finds other contents and damage, not forgeries.
class Fingerprint {
 public:
  void add(std::string_view text);
  // Errors: kIo.
  Status add_file(const std::string& path);
  std::string text() const;  // 32 hexadecimal digits

 private:
  void mix(Bytes bytes);

  uint64_t a_ = 0x9E3779B97F4A7C15U;
  uint64_t b_ = 0xC2B2AE3D27D4EB4FU;
};

}  // namespace pteryx::convert

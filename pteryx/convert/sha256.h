// SHA-256, which names the blobs of a program. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "pteryx/base/bytes.h"

namespace pteryx::convert {

class Sha256 {
 public:
  void add(Bytes bytes);
  std::string hex();  // of everything added; nothing may be added after it

 private:
  void block(const std::byte* p);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> part_{};
  size_t part_size_ = 0;
  uint64_t total_ = 0;
};

}  // namespace pteryx::convert

// Embedding tables in parts of their rows: what passes that make them must know.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace pteryx::ops {

// How pteryx.embedding_parts has its table.
enum class TableCodes : uint8_t {
  kNone,       // elements as they are
  kBytes,      // 8 bits
  kLowFirst,   // 4 bits offset by 8, two in a byte, even elements in the low nibble
  kHighFirst,  // the same with even elements in the high nibble
};

}  // namespace pteryx::ops

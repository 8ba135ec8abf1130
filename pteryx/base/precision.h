// How exactly matrix products are computed: the caller's choice, never a kernel's.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

#include "pteryx/base/status.h"

namespace pteryx {

enum class Precision : uint8_t {
  kF32,  // operands as they are, f32 products and sums
  kF16,  // operands may be rounded to f16 on their way into a product; sums stay f32
};

// "f32" or "f16"; anything else is kInvalidArgument.
Result<Precision> parse_precision(std::string_view text);

}  // namespace pteryx

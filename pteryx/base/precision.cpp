// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/precision.h"

#include <fmt/format.h>

namespace pteryx {

Result<Precision> parse_precision(std::string_view text) {
  if (text == "f32") return Precision::kF32;
  if (text == "f16") return Precision::kF16;
  return invalid_argument(fmt::format("precision: expected f32 or f16, got '{}'", text));
}

}  // namespace pteryx

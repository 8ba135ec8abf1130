// The quantised products that passes make of layers, by their weights.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace pteryx::fuse {

struct ProductOps {
  std::string_view layer;    // as it came
  std::string_view product;  // with slots for what is around it
  std::string_view rotated;  // for queries, keys and values
};
inline constexpr ProductOps kProductOps[] = {
    {"et_vk.linear_q4gsw.default", "pteryx.linear_q4gsw", "pteryx.linear_q4gsw_rope"},
    {"aten._weight_int8pack_mm.default", "pteryx.linear_q8", "pteryx.linear_q8_rope"},
};

}  // namespace pteryx::fuse

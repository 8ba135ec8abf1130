// What random matrix products have in common, plain and quantised ones.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/ops/testing/draw.h"

namespace pteryx::ops::testing {

struct ProductSizes {
  int64_t m, k, n;
};

// What the text of a kernel depends on is drawn as one of a few kinds; a text takes a quarter of a
// second to compile on a software GPU. Sizes beside it are free.
struct ProductKind {
  enum class Rows : uint8_t { kOne, kFew, kMany } rows;
  bool aligned;  // k a multiple of 32, n of 4; else both odd
  bool biased;
  DType type;
};
const ProductKind& draw_product_kind(Draw& d);
ProductSizes draw_product_sizes(Draw& d, const ProductKind& kind);

}  // namespace pteryx::ops::testing

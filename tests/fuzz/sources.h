// What the fuzz targets of weight files check of what a reader accepts. SPDX-License-Identifier:
// BSD-3-Clause
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "check.h"

#include "pteryx/base/source.h"
#include "pteryx/convert/model.h"

namespace pteryx::fuzz {

inline SourcePtr source_of(Bytes bytes) { return std::make_shared<MemorySource>("file", bytes); }

// Every row can be read, and the bytes are as many as the dims say.
inline void read_all(const convert::Checkpoint& c) {
  for (const auto& [name, t] : c.tensors()) {
    if (convert::data_bytes(t.type, t.dims.span()) != t.size) std::abort();
    if (t.size == 0) continue;  // no rows, of whatever length
    std::vector<float> row(static_cast<size_t>(t.cols()));
    for (int64_t r = 0; r < t.rows(); ++r) {
      if (!t.read_row(r, row).ok()) std::abort();
    }
  }
}

inline void expect_refusal(const Status& s) {
  if (!is_refusal(s)) std::abort();
}

// A shape that was accepted keeps its promises.
inline void expect_sound(const convert::ModelShape& s) {
  if (!convert::check(s).ok() || s.heads % s.kv_heads != 0 || s.head_size % 2 != 0) std::abort();
}

}  // namespace pteryx::fuzz

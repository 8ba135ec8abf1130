// libFuzzer target: an input file of the command line tool. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "cli/npy.h"
#include "input.h"

namespace {

// Whether every element that the dims and strides name lies inside the data.
bool is_sound(const pteryx::cli::Array& a) {
  const uint64_t element = size_bytes(a.dtype);
  const auto count = pteryx::checked_numel(a.dims.span(), element);
  if (!count || a.data.size() != static_cast<uint64_t>(*count) * element) return false;
  if (a.strides.empty() || *count == 0) return true;
  if (a.strides.rank() != a.dims.rank()) return false;
  int64_t last = 0;
  for (size_t d = 0; d < a.dims.rank(); ++d) last += a.strides[d] * (a.dims[d] - 1);
  return last == *count - 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  const auto array = pteryx::cli::parse_npy(input.bytes());
  if (array.ok() && !is_sound(*array)) std::abort();
  if (!array.ok() && (array.status().code() != pteryx::Code::kInvalidProgram ||
                      array.status().message().empty())) {
    std::abort();
  }
  return 0;
}

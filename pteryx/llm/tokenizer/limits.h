// How large a vocabulary may claim to be before memory is taken for it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <fmt/format.h>

#include "pteryx/base/status.h"

namespace pteryx::llm {

inline constexpr size_t kMostTokens = size_t{1} << 21;

inline Status check_token_count(size_t count) {
  if (count <= kMostTokens) return {};
  return invalid_program(
      fmt::format("tokenizer has {} tokens or more: expected at most {}", count, kMostTokens));
}

}  // namespace pteryx::llm

// Prompts and texts of arbitrary tokens, for measurements. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "pteryx/llm.h"

namespace pteryx::cli {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<TokenId> some_tokens(int64_t count, int64_t vocabulary);

// A prompt in chunks, until the token after it is there.
Status read_prompt(llm::Sequence& s, std::span<const TokenId> ids);

// One token at that position, which the steps after it follow.
Status begin_text(llm::Sequence& s, int64_t position);
// So many more tokens; gives the seconds of the host's own work, all of it in the thread that
// calls: of starting steps and of taking their tokens. Speed does not depend on what the caches
// hold, so they need not be filled.
Result<double> continue_text(llm::Sequence& s, int64_t position, int64_t count);

}  // namespace pteryx::cli

// SPDX-License-Identifier: BSD-3-Clause
#include "token_runs.h"

#include <algorithm>

#include "pteryx/gpu/native/blocking.h"
#include "pteryx/session/native/blocking.h"

namespace pteryx::cli {
namespace {

Status wait_all(Steps& steps) {
  while (steps.under_way() > 0) {
    auto token = blocking::take(steps);
    if (!token.ok()) return std::move(token).status();
  }
  return {};
}

}  // namespace

std::vector<TokenId> some_tokens(int64_t count, int64_t vocabulary) {
  std::vector<TokenId> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<TokenId>((i * 2654435761U) % static_cast<uint64_t>(vocabulary));
  return ids;
}

Status read_prompt(llm::Sequence& s, std::span<const TokenId> ids) {
  const auto chunk = static_cast<size_t>(s.model().info().chunk);
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t count = std::min(chunk, ids.size() - at);
    const bool last = at + count == ids.size();
    const auto position = static_cast<int64_t>(at);
    PTERYX_TRY(last ? blocking::start(s.steps(), ids.subspan(at, count), position)
                    : blocking::feed(s.steps(), ids.subspan(at, count), position));
  }
  return wait_all(s.steps());
}

Status begin_text(llm::Sequence& s, int64_t position) {
  const TokenId first = 1;
  PTERYX_TRY(blocking::start(s.steps(), std::span(&first, 1), position));
  return wait_all(s.steps());
}

Result<double> continue_text(llm::Sequence& s, int64_t position, int64_t count) {
  Steps& steps = s.steps();
  double host = 0;
  int64_t started = 0;
  for (int64_t taken = 0; taken < count; ++taken) {
    const auto before = std::chrono::steady_clock::now();
    for (; started < count && steps.can_start(); ++started)
      PTERYX_TRY(blocking::start_next(steps, position + 1 + started));
    host += seconds_since(before);
    // Asking for a token that is not there yet is waiting; taking it is work.
    PTERYX_TRY(gpu::wait_until(steps.device(), [&]() -> Result<bool> {
      const auto asked = std::chrono::steady_clock::now();
      PTERYX_ASSIGN(const std::optional<TokenId> token, steps.take());
      if (token) host += seconds_since(asked);
      return token.has_value();
    }));
  }
  return host;
}

}  // namespace pteryx::cli

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/charsmap.h"

#include <cstring>

#include <fmt/format.h>

#include "pteryx/base/bytes.h"

namespace pteryx::llm {
namespace {

// A unit of the array: label in the low byte, or a value; bit 8: there is a value below.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1U) != 0; }
uint32_t label(uint32_t unit) { return unit & (1U << 31 | 0xFFU); }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 1U << 9) >> 6); }
uint32_t value(uint32_t unit) { return unit & ~(1U << 31); }

}  // namespace

Result<Charsmap> Charsmap::read(std::string_view blob) {
  Charsmap map;
  if (blob.empty()) return map;
  const Bytes bytes = std::as_bytes(std::span(blob));
  const auto size = read_at<uint32_t>(bytes, 0);
  if (!size || *size % 4 != 0 || !in_range(4, *size, blob.size())) {
    return invalid_program(fmt::format("normalizer table of {} bytes: its trie has {}", blob.size(),
                                       size.value_or(0)));
  }
  map.units_.resize(*size / 4);
  if (*size != 0) std::memcpy(map.units_.data(), blob.data() + 4, *size);
  map.strings_ = blob.substr(size_t{4} + *size);
  return map;
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const {
  if (units_.empty()) return std::nullopt;
  std::optional<Match> best;
  uint32_t at = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= offset(unit);
    if (at >= units_.size()) break;
    if (!has_leaf(unit)) continue;
    const uint32_t begin = value(units_[at]);
    if (begin >= strings_.size()) break;
    const size_t end = strings_.find('\0', begin);
    best = Match{i + 1, std::string_view(strings_).substr(begin, end - begin)};
  }
  return best;
}

}  // namespace pteryx::llm

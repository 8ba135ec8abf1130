// How a text is cut into words before the model sees it, as a tokenizer.json lists it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/llm/tokenizer/normalizer.h"
#include "pteryx/llm/tokenizer/pieces.h"

namespace pteryx::llm {

// What becomes of the matches of a cut.
enum class Cut : uint8_t { kRemoved, kIsolated, kWithPrevious, kWithNext, kContiguous };

struct Split {
  Pattern pattern;
  Cut cut = Cut::kIsolated;
  bool invert = false;  // what is between the matches counts as the matches
};
struct CharSplit {
  bool (*matches)(char32_t) = nullptr;
  Cut cut = Cut::kIsolated;
};
struct PrefixSpace {};  // a space in front of every piece that starts without one
enum class PrependWhen : uint8_t { kNever, kFirst, kAlways };
struct Metaspace {
  std::string replacement;
  PrependWhen prepend = PrependWhen::kAlways;
  bool split = true;
};

using PreTokenizer = std::variant<Split, CharSplit, PrefixSpace, Metaspace>;

// The pieces of a text that starts at the start of the input, or further in.
Result<Pieces> pre_tokenize(const std::vector<PreTokenizer>& steps, std::string text,
                            bool at_start);

}  // namespace pteryx::llm

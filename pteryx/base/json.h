// JSON from outside: the one parser for it, which bounds how deep a document is nested before any
// of it is built.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json.hpp>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx {

using Json = nlohmann::json;

inline constexpr size_t kDeepestJson = 64;
inline constexpr size_t kLargestJson = size_t{256} << 20;

struct JsonRules {
  size_t deepest = kDeepestJson;
  bool unique = false;  // no two members of the outermost object may have one name
};

// `what` names the document in messages. Errors: kInvalidProgram with the byte, for what is no
// JSON, is too large or is nested deeper than the rules allow, or with the name that occurs twice.
Result<Json> parse_json(std::string_view text, std::string_view what, const JsonRules& rules = {});
Result<Json> parse_json(Bytes bytes, std::string_view what, const JsonRules& rules = {});

}  // namespace pteryx

// Values as JSON. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/llm/chat/builders.h"
#include "pteryx/llm/chat/value.h"

namespace pteryx::llm::chat {

struct JsonStyle {
  int64_t indent = -1;  // below 0: all on one line
  bool ascii_only = false;
  bool sort_keys = false;
  std::string_view item_separator = ", ";
  std::string_view key_separator = ": ";
};

// Errors: kInvalidArgument for what JSON has no word for, and past a limit.
Status write_json(const Value& value, const JsonStyle& style, TextBuilder& out);

}  // namespace pteryx::llm::chat

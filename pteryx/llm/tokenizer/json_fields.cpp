// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/json_fields.h"

#include <algorithm>

#include <fmt/format.h>

namespace pteryx::llm {
namespace {

constexpr size_t kDeepest = 64;  // the readers go down step by step

// How deep brackets are nested outside of strings.
size_t nesting(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

const Json& null_value() {
  static const Json kNull;
  return kNull;
}

}  // namespace

Result<Json> parse_json(Bytes bytes, std::string_view what) {
  const auto* const begin = reinterpret_cast<const char*>(bytes.data());
  if (nesting({begin, bytes.size()}) > kDeepest) {
    return invalid_program(fmt::format("{} is nested more than {} deep", what, kDeepest));
  }
  Json json = Json::parse(begin, begin + bytes.size(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return invalid_program(fmt::format("{} is not JSON", what));
  return json;
}

JsonField JsonField::member(std::string_view key) const {
  const auto it = value_->is_object() ? value_->find(key) : value_->end();
  const bool found = value_->is_object() && it != value_->end();
  return {found ? *it : null_value(),
          path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key)};
}

JsonField JsonField::at(size_t index) const {
  return {(*value_)[index], fmt::format("{}[{}]", path_, index)};
}

Status JsonField::wrong(std::string_view expected) const {
  return invalid_program(fmt::format("{}: expected {}, got {}",
                                     path_.empty() ? "the document" : path_, expected,
                                     value_->type_name()));
}

Result<std::string> JsonField::string() const {
  const auto* const s = value_->get_ptr<const std::string*>();
  if (s == nullptr) return wrong("a string");
  return *s;
}

Result<std::string_view> JsonField::text() const {
  const auto* const s = value_->get_ptr<const std::string*>();
  if (s == nullptr) return wrong("a string");
  return std::string_view(*s);
}

Result<uint32_t> JsonField::number() const {
  const auto* const n = value_->get_ptr<const uint64_t*>();
  if (n == nullptr || *n > UINT32_MAX) return wrong("a whole number below 2^32");
  return static_cast<uint32_t>(*n);
}

Status JsonField::expect_array() const { return value_->is_array() ? Status() : wrong("an array"); }

Status JsonField::expect_object() const {
  return value_->is_object() ? Status() : wrong("an object");
}

Result<bool> JsonField::boolean(bool otherwise) const {
  if (is_null()) return otherwise;
  const auto* const b = value_->get_ptr<const bool*>();
  if (b == nullptr) return wrong("true or false");
  return *b;
}

Result<std::string> JsonField::string_or(std::string_view otherwise) const {
  if (is_null()) return std::string(otherwise);
  return string();
}

}  // namespace pteryx::llm

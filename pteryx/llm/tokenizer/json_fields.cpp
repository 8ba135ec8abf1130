// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/json_fields.h"

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"

namespace pteryx::llm {

JsonField JsonField::member(std::string_view key) const {
  return {(*value_)[key], path_.empty() ? excerpt(key) : fmt::format("{}.{}", path_, excerpt(key))};
}

JsonField JsonField::at(size_t index) const {
  return {(*value_->array())[index], fmt::format("{}[{}]", path_, index)};
}

Status JsonField::wrong(std::string_view expected) const {
  return invalid_program(fmt::format("{}: expected {}, got {}",
                                     path_.empty() ? "the document" : path_, expected,
                                     value_->type_name()));
}

Result<std::string> JsonField::string() const {
  const std::string* const s = value_->text();
  if (s == nullptr) return wrong("a string");
  return *s;
}

Result<std::string_view> JsonField::text() const {
  const std::string* const s = value_->text();
  if (s == nullptr) return wrong("a string");
  return std::string_view(*s);
}

Result<uint32_t> JsonField::number() const {
  const auto n = value_->whole();
  if (!n || *n > UINT32_MAX) return wrong("a whole number below 2^32");
  return static_cast<uint32_t>(*n);
}

Result<int64_t> JsonField::integer() const {
  if (const auto i = value_->integer()) return *i;
  return wrong(value_->whole() ? "an integer below 2^63" : "an integer");
}

Result<double> JsonField::real() const {
  if (const auto d = value_->number()) return *d;
  return wrong("a number");
}

Status JsonField::expect_array() const {
  return value_->array() != nullptr ? Status() : wrong("an array");
}

Status JsonField::expect_object() const {
  return value_->object() != nullptr ? Status() : wrong("an object");
}

Result<bool> JsonField::boolean(bool otherwise) const {
  if (is_null()) return otherwise;
  const bool* const b = value_->flag();
  if (b == nullptr) return wrong("true or false");
  return *b;
}

Result<std::string> JsonField::string_or(std::string_view otherwise) const {
  if (is_null()) return std::string(otherwise);
  return string();
}

}  // namespace pteryx::llm

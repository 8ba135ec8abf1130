// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/json_fields.h"

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"

namespace pteryx::llm {
namespace {

const Json& null_value() {
  static const Json kNull;
  return kNull;
}

}  // namespace

JsonField JsonField::member(std::string_view key) const {
  const auto it = value_->is_object() ? value_->find(key) : value_->end();
  const bool found = value_->is_object() && it != value_->end();
  return {found ? *it : null_value(),
          path_.empty() ? excerpt(key) : fmt::format("{}.{}", path_, excerpt(key))};
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

Result<int64_t> JsonField::integer() const {
  const auto* const u = value_->get_ptr<const uint64_t*>();
  if (u != nullptr && *u > INT64_MAX) return wrong("an integer below 2^63");
  if (!value_->is_number_integer()) return wrong("an integer");
  return value_->get<int64_t>();
}

Result<double> JsonField::real() const {
  if (!value_->is_number()) return wrong("a number");
  return value_->get<double>();
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

// Typed access to a parsed JSON object: what is missing or of another kind is nullopt.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "pteryx/base/bytes.h"
#include "pteryx/base/checked.h"
#include "pteryx/base/json.h"
#include "pteryx/base/status.h"

namespace pteryx::convert {

inline std::optional<int64_t> as_integer(const Json& v) {
  if (v.is_number_unsigned()) {
    const auto u = v.get<uint64_t>();
    return fits<int64_t>(u) ? std::optional(static_cast<int64_t>(u)) : std::nullopt;
  }
  return v.is_number_integer() ? std::optional(v.get<int64_t>()) : std::nullopt;
}

// A member that is there and not null.
inline const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}
inline std::optional<int64_t> integer(const Json& object, const char* key) {
  const Json* v = member(object, key);
  return v == nullptr ? std::nullopt : as_integer(*v);
}
inline std::optional<double> number(const Json& object, const char* key) {
  const Json* v = member(object, key);
  return v == nullptr || !v->is_number() ? std::nullopt : std::optional(v->get<double>());
}
inline std::optional<bool> flag(const Json& object, const char* key) {
  const Json* v = member(object, key);
  return v == nullptr || !v->is_boolean() ? std::nullopt : std::optional(v->get<bool>());
}
inline std::optional<std::string> text(const Json& object, const char* key) {
  const Json* v = member(object, key);
  return v == nullptr || !v->is_string() ? std::nullopt : std::optional(v->get<std::string>());
}

// The object in `bytes`; `what` names it in the error.
inline Result<Json> parse_object(Bytes bytes, std::string_view what) {
  PTERYX_ASSIGN(Json j, parse_json(bytes, what));
  if (!j.is_object()) return invalid_program(fmt::format("{}: not a JSON object", what));
  return j;
}

}  // namespace pteryx::convert

// SPDX-License-Identifier: BSD-3-Clause
#include "document.h"

#include <nlohmann/json.hpp>

namespace pteryx::cli {
namespace {

using nlohmann::json;

json document_of(const Json& j) {
  if (j.is_null()) return nullptr;
  if (const bool* const b = j.flag()) return *b;
  if (const std::string* const s = j.text()) return *s;
  if (const auto u = j.whole()) return *u;
  if (const auto i = j.integer()) return *i;
  if (const auto d = j.number()) return *d;
  if (const Json::Array* const a = j.array()) {
    json list = json::array();
    for (const Json& element : *a) list.push_back(document_of(element));
    return list;
  }
  json object = json::object();
  for (const auto& [key, value] : *j.object()) object[key] = document_of(value);
  return object;
}

}  // namespace

Result<json> read_document(std::string_view text, std::string_view what, const JsonRules& rules) {
  PTERYX_ASSIGN(const Json parsed, parse_json(text, what, rules));
  return document_of(parsed);
}

Result<json> read_document(Bytes bytes, std::string_view what, const JsonRules& rules) {
  PTERYX_ASSIGN(const Json parsed, parse_json(bytes, what, rules));
  return document_of(parsed);
}

}  // namespace pteryx::cli

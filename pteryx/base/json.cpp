// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/json.h"

#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"

namespace pteryx {
namespace {

// Reads a document for the place of its error alone.
struct ErrorLocator : nlohmann::json_sax<Json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    at_byte = position;
    return false;
  }

  size_t at_byte = 0;  // counted from 1
};

// Fails where brackets outside of strings are nested deeper than that.
Status check_depth(std::string_view text, std::string_view what, size_t deepest) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest) {
        return invalid_program(fmt::format("{}: JSON is nested deeper than {} levels at byte {}",
                                           what, deepest, at + 1));
      }
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return {};
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what, const JsonRules& rules) {
  PTERYX_TRY(check_depth(text, what, rules.deepest));
  std::set<std::string> seen;
  std::optional<std::string> twice;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!seen.insert(key).second && !twice) twice = key;
    }
    return true;
  };
  const Json::parser_callback_t each = rules.unique ? watch : Json::parser_callback_t();
  Json json = Json::parse(text.begin(), text.end(), each, /*allow_exceptions=*/false);
  if (twice) return invalid_program(fmt::format("{}: '{}' occurs twice", what, excerpt(*twice)));
  if (!json.is_discarded()) return json;
  ErrorLocator locator;
  Json::sax_parse(text.begin(), text.end(), &locator);
  return invalid_program(fmt::format("{}: not JSON at byte {}", what, locator.at_byte));
}

Result<Json> parse_json(Bytes bytes, std::string_view what, const JsonRules& rules) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_json(text, what, rules);
}

}  // namespace pteryx

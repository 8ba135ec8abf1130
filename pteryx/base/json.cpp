// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/json.h"

#include <optional>
#include <string>
#include <unordered_set>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"

namespace pteryx {
namespace {

// Reads a document without building it: for the place of its error, and for members of the
// outermost object that have one name. (A callback of the parser that builds would look at all
// members again after each.)
struct Scan : nlohmann::json_sax<Json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (depth == 1 && !seen.insert(name).second && !twice) twice = name;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    at_byte = position;
    return false;
  }
  bool enter() { return ++depth > 0; }
  bool leave() { return depth-- > 0; }

  size_t depth = 0;
  std::unordered_set<std::string> seen;
  std::optional<std::string> twice;
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
  if (text.size() > kLargestJson) {
    return invalid_program(fmt::format("{}: expected at most {} bytes of JSON, got {}", what,
                                       kLargestJson, text.size()));
  }
  PTERYX_TRY(check_depth(text, what, rules.deepest));
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded() && !rules.unique) return json;
  Scan scan;
  Json::sax_parse(text.begin(), text.end(), &scan);
  if (json.is_discarded())
    return invalid_program(fmt::format("{}: not JSON at byte {}", what, scan.at_byte));
  if (scan.twice)
    return invalid_program(fmt::format("{}: '{}' occurs twice", what, excerpt(*scan.twice)));
  return json;
}

Result<Json> parse_json(Bytes bytes, std::string_view what, const JsonRules& rules) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_json(text, what, rules);
}

}  // namespace pteryx

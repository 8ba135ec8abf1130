// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/hf_steps.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/base/utf8.h"
#include "pteryx/llm/tokenizer/presets.h"
#include "pteryx/llm/tokenizer/unicode.h"

namespace pteryx::llm {
namespace {

constexpr std::string_view kMetaspace = "\xE2\x96\x81";

Status unknown_step(const JsonField& json, std::string_view type) {
  return unsupported(fmt::format("{}: '{}' is not supported", json.path(), excerpt(type)));
}

// Calls read(element) for each element of a list of steps.
template <typename Read>
Status each_element(const JsonField& list, Read read) {
  PTERYX_TRY(list.expect_array());
  for (size_t i = 0; i < list.size(); ++i) PTERYX_TRY(read(list.at(i)));
  return {};
}

std::optional<NormalForm> form_of(std::string_view name) {
  if (name == "NFC") return NormalForm::kNfc;
  if (name == "NFD") return NormalForm::kNfd;
  if (name == "NFKC") return NormalForm::kNfkc;
  if (name == "NFKD") return NormalForm::kNfkd;
  return std::nullopt;
}

constexpr std::pair<std::string_view, Cut> kCuts[] = {{"Removed", Cut::kRemoved},
                                                      {"Isolated", Cut::kIsolated},
                                                      {"MergedWithPrevious", Cut::kWithPrevious},
                                                      {"MergedWithNext", Cut::kWithNext},
                                                      {"Contiguous", Cut::kContiguous}};

Result<Cut> read_cut(const JsonField& json) {
  PTERYX_ASSIGN(const std::string name, json.string_or("Isolated"));
  for (const auto& [known, cut] : kCuts) {
    if (name == known) return cut;
  }
  return invalid_program(
      fmt::format("{}: '{}' is no behavior of a split", json.path(), excerpt(name)));
}

Result<PreTokenizer> read_split(const JsonField& json) {
  PTERYX_ASSIGN(Pattern pattern, read_pattern(json.member("pattern")));
  PTERYX_ASSIGN(const Cut cut, read_cut(json.member("behavior")));
  PTERYX_ASSIGN(const bool invert, json.member("invert").boolean(false));
  return PreTokenizer(Split{.pattern = std::move(pattern), .cut = cut, .invert = invert});
}

Result<PreTokenizer> regex_split(std::string_view pattern, Cut cut, bool invert) {
  PTERYX_ASSIGN(Regex regex, Regex::compile(pattern));
  return PreTokenizer(Split{.pattern = {std::move(regex)}, .cut = cut, .invert = invert});
}

Status read_byte_level(const JsonField& json, HfPreTokenizers& out) {
  PTERYX_ASSIGN(const bool prefix, json.member("add_prefix_space").boolean(true));
  PTERYX_ASSIGN(const bool regex, json.member("use_regex").boolean(true));
  if (prefix) out.steps.emplace_back(PrefixSpace{});
  if (regex) {
    PTERYX_ASSIGN(auto gpt2, preset_pre_tokenizers("gpt-2"));
    out.steps.push_back(std::move(gpt2[0]));
  }
  out.byte_level = true;
  return {};
}

Result<PreTokenizer> read_metaspace(const JsonField& json) {
  PTERYX_ASSIGN(std::string replacement, json.member("replacement").string_or(kMetaspace));
  if (replacement.empty() || char_at(replacement, 0).size_bytes != replacement.size()) {
    return invalid_program(fmt::format("{}.replacement: expected one character", json.path()));
  }
  PTERYX_ASSIGN(const PrependWhen prepend, read_prepend(json));
  PTERYX_ASSIGN(const bool split, json.member("split").boolean(true));
  return PreTokenizer(
      Metaspace{.replacement = std::move(replacement), .prepend = prepend, .split = split});
}

Result<PreTokenizer> read_cutter(const JsonField& json, std::string_view type) {
  if (type == "Split") return read_split(json);
  if (type == "Metaspace") return read_metaspace(json);
  if (type == "Digits") {
    PTERYX_ASSIGN(const bool single, json.member("individual_digits").boolean(false));
    return PreTokenizer(CharSplit{is_numeric, single ? Cut::kIsolated : Cut::kContiguous});
  }
  if (type == "Punctuation") {
    PTERYX_ASSIGN(const Cut cut, read_cut(json.member("behavior")));
    return PreTokenizer(CharSplit{is_punctuation, cut});
  }
  if (type == "Whitespace") return regex_split(R"(\w+|[^\w\s]+)", Cut::kRemoved, true);
  if (type == "WhitespaceSplit") return PreTokenizer(CharSplit{is_space, Cut::kRemoved});
  return unknown_step(json, type);
}

Result<Normalizer> read_change(const JsonField& json, std::string_view type) {
  if (const auto form = form_of(type)) return Normalizer(*form);
  if (type == "Lowercase") return Normalizer(Lowercase{});
  if (type == "StripAccents") return Normalizer(StripAccents{});
  if (type == "Prepend") {
    PTERYX_ASSIGN(std::string text, json.member("prepend").string());
    return Normalizer(Prepend{std::move(text)});
  }
  if (type == "Replace") {
    PTERYX_ASSIGN(Pattern pattern, read_pattern(json.member("pattern")));
    PTERYX_ASSIGN(std::string text, json.member("content").string());
    return Normalizer(Replace{std::move(pattern), std::move(text)});
  }
  if (type == "Strip") {
    PTERYX_ASSIGN(const bool left, json.member("strip_left").boolean(true));
    PTERYX_ASSIGN(const bool right, json.member("strip_right").boolean(true));
    return Normalizer(StripSpace{left, right});
  }
  return unknown_step(json, type);
}

}  // namespace

Result<Pattern> read_pattern(const JsonField& json) {
  const JsonField plain = json.member("String");
  if (!plain.is_null()) {
    PTERYX_ASSIGN(std::string text, plain.string());
    return Pattern{std::move(text)};
  }
  PTERYX_ASSIGN(const std::string text, json.member("Regex").string());
  auto regex = Regex::compile(text);
  if (!regex.ok()) return std::move(regex).status().during("reading " + json.path());
  return Pattern{std::move(regex).value()};
}

Result<PrependWhen> read_prepend(const JsonField& metaspace) {
  const JsonField scheme = metaspace.member("prepend_scheme");
  if (scheme.is_null()) {
    PTERYX_ASSIGN(const bool always, metaspace.member("add_prefix_space").boolean(true));
    return always ? PrependWhen::kAlways : PrependWhen::kNever;
  }
  PTERYX_ASSIGN(const std::string name, scheme.string());
  if (name == "always") return PrependWhen::kAlways;
  if (name == "first") return PrependWhen::kFirst;
  if (name == "never") return PrependWhen::kNever;
  return invalid_program(
      fmt::format("{}: expected always, first or never, got '{}'", scheme.path(), excerpt(name)));
}

Status read_normalizer(const JsonField& json, std::vector<Normalizer>& steps) {
  if (json.is_null()) return {};
  PTERYX_ASSIGN(const std::string_view type, json.member("type").text());
  if (type == "Sequence") {
    return each_element(json.member("normalizers"),
                        [&](const JsonField& each) { return read_normalizer(each, steps); });
  }
  PTERYX_ASSIGN(Normalizer step, read_change(json, type));
  steps.push_back(std::move(step));
  return {};
}

Status read_pre_tokenizer(const JsonField& json, HfPreTokenizers& out) {
  if (json.is_null()) return {};
  PTERYX_ASSIGN(const std::string_view type, json.member("type").text());
  if (type == "Sequence") {
    return each_element(json.member("pretokenizers"),
                        [&](const JsonField& each) { return read_pre_tokenizer(each, out); });
  }
  if (out.byte_level) {
    return unsupported(
        fmt::format("{}: '{}' after ByteLevel is not supported", json.path(), excerpt(type)));
  }
  if (type == "ByteLevel") return read_byte_level(json, out);
  PTERYX_ASSIGN(PreTokenizer step, read_cutter(json, type));
  out.steps.push_back(std::move(step));
  return {};
}

}  // namespace pteryx::llm

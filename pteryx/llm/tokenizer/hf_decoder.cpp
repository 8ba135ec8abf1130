// The decoders of a tokenizer.json. SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/llm/tokenizer/byte_tokens.h"
#include "pteryx/llm/tokenizer/hf_steps.h"

namespace pteryx::llm {

Result<HfDecoder> HfDecoder::read(const JsonField& json) {
  HfDecoder decoder;
  if (!json.is_null()) PTERYX_TRY(decoder.add(json));
  return decoder;
}

Status HfDecoder::add(const JsonField& json) {
  PTERYX_ASSIGN(const std::string_view type, json.member("type").text());
  if (type == "Sequence") {
    const JsonField list = json.member("decoders");
    PTERYX_TRY(list.expect_array());
    for (size_t i = 0; i < list.size(); ++i) PTERYX_TRY(add(list.at(i)));
    return {};
  }
  if (type == "Fuse") {
    fused_ = true;
    return {};
  }
  if (type == "Strip") return add_strip(json);
  if (fused_) {
    return unsupported(
        fmt::format("{}: '{}' after Fuse is not supported", json.path(), excerpt(type)));
  }
  if (type == "ByteLevel") {
    steps_.emplace_back(ByteLevel{});
  } else if (type == "ByteFallback") {
    steps_.emplace_back(ByteFallback{});
  } else if (type == "Metaspace") {
    return add_metaspace(json);
  } else if (type == "Replace") {
    PTERYX_ASSIGN(Pattern pattern, read_pattern(json.member("pattern")));
    PTERYX_ASSIGN(std::string text, json.member("content").string());
    steps_.emplace_back(Replace{std::move(pattern), std::move(text)});
  } else if (type == "BPEDecoder") {
    PTERYX_ASSIGN(std::string suffix, json.member("suffix").string_or("</w>"));
    steps_.emplace_back(WordEnd{std::move(suffix)});
  } else {
    return unsupported(fmt::format("{}: '{}' is not supported", json.path(), excerpt(type)));
  }
  return {};
}

// Before Fuse it strips every token; behind it, the whole text.
Status HfDecoder::add_strip(const JsonField& json) {
  PTERYX_ASSIGN(std::string what, json.member("content").string());
  PTERYX_ASSIGN(const uint32_t start, json.member("start").number());
  PTERYX_ASSIGN(const uint32_t stop, json.member("stop").number());
  if (!fused_) {
    steps_.emplace_back(Strip{std::move(what), start, stop});
    return {};
  }
  if (what != " " || stop != 0) {
    return unsupported(fmt::format("{}: expected spaces at the start only, got {} '{}' at the end",
                                   json.path(), stop, excerpt(what)));
  }
  leading_ = {.most = start};
  return {};
}

Status HfDecoder::add_metaspace(const JsonField& json) {
  PTERYX_ASSIGN(std::string replacement, json.member("replacement").string_or("\xE2\x96\x81"));
  PTERYX_ASSIGN(const PrependWhen prepend, read_prepend(json));
  steps_.emplace_back(Replace{.pattern = {std::move(replacement)}, .text = " "});
  if (prepend != PrependWhen::kNever) leading_ = {.most = UINT32_MAX, .first_token_only = true};
  return {};
}

Result<std::string> HfDecoder::apply(std::string_view token, bool byte_level) const {
  std::string text(token);
  for (const Step& step : steps_) {
    if (std::holds_alternative<ByteLevel>(step)) {
      auto bytes = byte_level ? bytes_of_characters(text) : std::nullopt;
      if (bytes) text = std::move(*bytes);
    } else if (std::holds_alternative<ByteFallback>(step)) {
      if (const auto byte = byte_of_token(text)) text.assign(1, static_cast<char>(*byte));
    } else if (const auto* const replace = std::get_if<Replace>(&step)) {
      PTERYX_ASSIGN(text, apply_normalizers({*replace}, text));
    } else if (const auto* const strip = std::get_if<Strip>(&step)) {
      for (uint32_t i = 0; i < strip->start && !strip->what.empty(); ++i) {
        if (!text.starts_with(strip->what)) break;
        text.erase(0, strip->what.size());
      }
      for (uint32_t i = 0; i < strip->stop && !strip->what.empty(); ++i) {
        if (!text.ends_with(strip->what)) break;
        text.resize(text.size() - strip->what.size());
      }
    } else if (const auto* const end = std::get_if<WordEnd>(&step)) {
      if (!end->suffix.empty() && text.ends_with(end->suffix)) {
        text.replace(text.size() - end->suffix.size(), end->suffix.size(), " ");
      }
    }
  }
  return text;
}

}  // namespace pteryx::llm

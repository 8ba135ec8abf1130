// Every committed tokenizer against what the reference engines made of the same texts.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/base/utf8.h"
#include "pteryx/llm/testing/fixtures.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {
namespace {

using nlohmann::json;
using testing::load_tokenizer;
using testing::tokenizer_goldens;

std::vector<TokenId> encode(const Tokenizer& t, const std::string& text,
                            const EncodeOptions& options) {
  auto ids = t.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return ids.ok() ? *ids : std::vector<TokenId>();
}

std::string decode(const Tokenizer& t, const std::vector<TokenId>& ids, Specials specials) {
  auto text = t.decode(ids, specials);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

std::string stream(const Tokenizer& t, const std::vector<TokenId>& ids, Specials specials) {
  StreamDecoder decoder(t, specials, TextStart::kNew);
  std::string text;
  for (const TokenId id : ids) {
    auto piece = decoder.push(id);
    EXPECT_TRUE(piece.ok() && is_utf8(*piece));
    if (piece.ok()) text += *piece;
  }
  return text + decoder.finish();
}

class Goldens : public ::testing::TestWithParam<std::string> {
 protected:
  const json& golden() const { return tokenizer_goldens()["cases"][GetParam()]; }
  const json& texts() const { return tokenizer_goldens()["texts"]; }
  TokenizerPtr tokenizer_ = load_tokenizer(GetParam());
};

TEST_P(Goldens, EncodesAsTheReference) {
  for (const char* const mode : {"plain", "special"}) {
    if (!golden().contains(mode)) continue;
    const EncodeOptions options = {.parse_special = std::string_view(mode) == "special"};
    for (size_t i = 0; i < texts().size(); ++i) {
      const auto text = texts()[i].get<std::string>();
      EXPECT_EQ(json(encode(*tokenizer_, text, options)), golden()[mode][i])
          << mode << ": " << texts()[i].dump();
    }
  }
}

TEST_P(Goldens, DecodesAsTheReference) {
  const bool shows = GetParam().ends_with(".tiktoken");
  const Specials specials = shows ? Specials::kShow : Specials::kSkip;
  const json& encoded = golden().contains("special") ? golden()["special"] : golden()["plain"];
  for (size_t i = 0; i < texts().size(); ++i) {
    const auto ids = encoded[i].get<std::vector<TokenId>>();
    const auto expected = golden()["decoded"][i].get<std::string>();
    EXPECT_EQ(decode(*tokenizer_, ids, specials), expected) << texts()[i].dump();
    EXPECT_EQ(stream(*tokenizer_, ids, specials), expected) << texts()[i].dump();
  }
}

TEST_P(Goldens, DecodesAnyIdsAsTheReference) {
  for (size_t i = 0; i < golden()["ids"].size(); ++i) {
    const auto ids = golden()["ids"][i].get<std::vector<TokenId>>();
    const Specials specials = GetParam().ends_with(".model") ? Specials::kSkip : Specials::kShow;
    EXPECT_EQ(replace_invalid(decode(*tokenizer_, ids, specials)),
              golden()["ids_decoded"][i].get<std::string>())
        << golden()["ids"][i].dump();
  }
}

TEST_P(Goldens, TakesAnyBytes) {
  for (size_t i = 0; i < tokenizer_goldens()["not_utf8"].size(); ++i) {
    const auto hex = tokenizer_goldens()["not_utf8"][i].get<std::string>();
    std::string bytes;
    for (size_t at = 0; at < hex.size(); at += 2) {
      bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
    }
    const auto ids = encode(*tokenizer_, bytes, {});
    if (golden().contains("bytes")) {
      EXPECT_EQ(json(ids), golden()["bytes"][i]) << hex;
    }
  }
}

TEST_P(Goldens, FramesAsTheReference) {
  if (!golden().contains("framed")) return;
  const EncodeOptions& usual = tokenizer_->vocabulary().usual;
  EXPECT_EQ(json(encode(*tokenizer_, "Hello world", usual)), golden()["framed"]);
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const auto& [name, golden] : tokenizer_goldens()["cases"].items()) names.push_back(name);
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Goldens, ::testing::ValuesIn(all_names()), test_name);

}  // namespace
}  // namespace pteryx::llm

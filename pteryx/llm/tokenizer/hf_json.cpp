// Hugging Face's tokenizer.json. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/llm/tokenizer/byte_tokens.h"
#include "pteryx/llm/tokenizer/hf_model.h"
#include "pteryx/llm/tokenizer/hf_steps.h"
#include "pteryx/llm/tokenizer/json_fields.h"
#include "pteryx/llm/tokenizer/limits.h"
#include "pteryx/llm/tokenizer/pipeline.h"
#include "pteryx/llm/tokenizer/special_names.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {
namespace {

struct Added {
  std::vector<AddedToken> raw;
  std::vector<AddedToken> normalized;
};

Result<Added> read_added(const JsonField& list, const std::vector<Normalizer>& normalizers,
                         Vocabulary& v) {
  Added added;
  if (list.is_null()) return added;
  PTERYX_TRY(list.expect_array());
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonField json = list.at(i);
    AddedToken t;
    PTERYX_ASSIGN(t.id, json.member("id").number());
    PTERYX_ASSIGN(t.text, json.member("content").string());
    PTERYX_ASSIGN(t.special, json.member("special").boolean(false));
    PTERYX_ASSIGN(t.single_word, json.member("single_word").boolean(false));
    PTERYX_ASSIGN(t.left_strip, json.member("lstrip").boolean(false));
    PTERYX_ASSIGN(t.right_strip, json.member("rstrip").boolean(false));
    PTERYX_ASSIGN(const bool normalized, json.member("normalized").boolean(!t.special));
    PTERYX_TRY(check_token_count(size_t{t.id} + 1));
    if (t.id >= v.tokens.size()) v.tokens.resize(size_t{t.id} + 1);
    Token& token = v.tokens[t.id];
    token.text = t.text;
    token.kind = t.special ? TokenKind::kSpecial : TokenKind::kAdded;
    if (normalized) {
      PTERYX_ASSIGN(t.text, apply_normalizers(normalizers, t.text));
    }
    token.bytes = t.text;  // the decoders see it so
    (normalized ? added.normalized : added.raw).push_back(std::move(t));
  }
  return added;
}

Status check_ids(const std::vector<TokenId>& ids, const JsonField& json, const Vocabulary& v) {
  for (const TokenId id : ids) {
    if (id < v.tokens.size() && v.tokens[id].kind != TokenKind::kHole) continue;
    return invalid_program(fmt::format("{}: token {} is not in the vocabulary (size {})",
                                       json.path(), id, v.tokens.size()));
  }
  return {};
}

// [{"SpecialToken": {"id": name}}, {"Sequence": {"id": "A"}}, ...]
Status read_template(const JsonField& json, Vocabulary& v) {
  const JsonField single = json.member("single");
  PTERYX_TRY(single.expect_array());
  bool behind = false;
  for (size_t i = 0; i < single.size(); ++i) {
    const JsonField special = single.at(i).member("SpecialToken");
    if (special.is_null()) {
      behind = true;
      continue;
    }
    PTERYX_ASSIGN(const std::string name, special.member("id").string());
    const JsonField ids = json.member("special_tokens").member(name).member("ids");
    PTERYX_TRY(ids.expect_array());
    std::vector<TokenId>& side = behind ? v.suffix : v.prefix;
    for (size_t k = 0; k < ids.size(); ++k) {
      PTERYX_ASSIGN(const TokenId id, ids.at(k).number());
      side.push_back(id);
    }
  }
  PTERYX_TRY(check_ids(v.prefix, json, v));
  return check_ids(v.suffix, json, v);
}

// ["</s>", 2]
Status read_pair(const JsonField& json, const Vocabulary& v, std::vector<TokenId>& side) {
  PTERYX_TRY(json.expect_array());
  if (json.size() != 2) {
    return invalid_program(fmt::format("{}: expected a token and its id", json.path()));
  }
  PTERYX_ASSIGN(const TokenId id, json.at(1).number());
  side.push_back(id);
  return check_ids(side, json, v);
}

Status read_post_processor(const JsonField& json, Vocabulary& v) {
  if (json.is_null()) return {};
  PTERYX_ASSIGN(const std::string_view type, json.member("type").text());
  if (type == "Sequence") {
    const JsonField list = json.member("processors");
    PTERYX_TRY(list.expect_array());
    for (size_t i = 0; i < list.size(); ++i) PTERYX_TRY(read_post_processor(list.at(i), v));
    return {};
  }
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") return read_template(json, v);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    PTERYX_TRY(read_pair(json.member("cls"), v, v.prefix));
    return read_pair(json.member("sep"), v, v.suffix);
  }
  return unsupported(fmt::format("{}: '{}' is not supported", json.path(), excerpt(type)));
}

Status set_bytes(const HfDecoder& decoder, Vocabulary& v) {
  for (Token& token : v.tokens) {
    if (token.kind == TokenKind::kHole) continue;
    const bool added = token.kind != TokenKind::kNormal;
    PTERYX_ASSIGN(token.bytes,
                  added ? decoder.bytes_of_added(token.bytes) : decoder.bytes_of(token.text));
  }
  v.leading = decoder.leading();
  return {};
}

}  // namespace

Result<TokenizerPtr> read_hf_tokenizer(Bytes file) {
  PTERYX_ASSIGN(const Json document, parse_json(file, "tokenizer.json"));
  const JsonField root(document, "");
  PTERYX_TRY(root.member("model").expect_object());
  std::vector<Normalizer> normalizers;
  PTERYX_TRY(read_normalizer(root.member("normalizer"), normalizers));
  HfPreTokenizers pre;
  PTERYX_TRY(read_pre_tokenizer(root.member("pre_tokenizer"), pre));
  PTERYX_ASSIGN(const HfDecoder decoder, HfDecoder::read(root.member("decoder")));
  const Unit unit = pre.byte_level ? Unit::kByte : Unit::kChar;
  PTERYX_ASSIGN(HfModel model, read_hf_model(root.member("model"), unit));
  PTERYX_ASSIGN(Added added,
                read_added(root.member("added_tokens"), normalizers, model.vocabulary));
  PTERYX_TRY(read_post_processor(root.member("post_processor"), model.vocabulary));
  PTERYX_TRY(set_bytes(decoder, model.vocabulary));
  Vocabulary& v = model.vocabulary;
  if (!v.prefix.empty()) v.bos = v.prefix.front();
  v.eos = v.suffix;
  add_known_ends(v);
  v.usual = {.add_bos = !v.prefix.empty(), .add_eos = !v.suffix.empty()};
  Pipeline pipeline = {.added = AddedTokens(std::move(added.raw)),
                       .added_normalized = AddedTokens(std::move(added.normalized)),
                       .normalizers = std::move(normalizers),
                       .pre_tokenizers = std::move(pre.steps),
                       .model = std::move(model.model),
                       .unit = unit,
                       .cuts = std::move(model.cuts)};
  return TokenizerPtr(std::make_unique<PipelineTokenizer>(std::move(v), std::move(pipeline)));
}

}  // namespace pteryx::llm

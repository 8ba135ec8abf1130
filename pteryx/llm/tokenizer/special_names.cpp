// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/special_names.h"

#include <algorithm>
#include <string_view>

namespace pteryx::llm {
namespace {

constexpr std::string_view kBegins[] = {"<s>",
                                        "<bos>",
                                        "<|begin_of_text|>",
                                        "<|startoftext|>",
                                        "<BOS_TOKEN>",
                                        "<｜begin▁of▁sentence｜>"};
constexpr std::string_view kEnds[] = {"</s>",
                                      "<eos>",
                                      "<|end_of_text|>",
                                      "<|eot_id|>",
                                      "<|eom_id|>",
                                      "<|im_end|>",
                                      "<|endoftext|>",
                                      "<|end|>",
                                      "<end_of_turn>",
                                      "<|END_OF_TURN_TOKEN|>",
                                      "<EOS_TOKEN>",
                                      "<｜end▁of▁sentence｜>"};

bool is_one_of(std::string_view text, auto& names) {
  return std::find(std::begin(names), std::end(names), text) != std::end(names);
}

}  // namespace

void add_known_ends(Vocabulary& v) {
  for (TokenId id = 0; id < v.tokens.size(); ++id) {
    const Token& token = v.tokens[id];
    if (token.kind != TokenKind::kSpecial) continue;
    if (!v.bos && is_one_of(token.text, kBegins)) v.bos = id;
    if (is_one_of(token.text, kEnds) && std::find(v.eos.begin(), v.eos.end(), id) == v.eos.end()) {
      v.eos.push_back(id);
    }
  }
}

}  // namespace pteryx::llm

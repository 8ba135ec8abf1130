// Hugging Face's tokenizer_config.json: what stands beside a tokenizer.json.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx::llm {

struct TokenizerConfig {
  std::string bos_token;  // empty: none
  std::string eos_token;
  std::string chat_template;  // empty: none; of several, the one named "default"
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
};

// Errors: kInvalidProgram with the member that is wrong.
Result<TokenizerConfig> read_tokenizer_config(Bytes json);

}  // namespace pteryx::llm

// A language model, loaded: the session that draws its tokens, what the program says of itself, and
// its tokenizer.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/steps.h"

namespace pteryx::generate {

struct ModelOptions {
  LoadOptions load = {};
  std::string tokenizer = {};  // a file that takes the place of the program's own
  bool ids_only = false;  // no tokenizer is read: none is needed, whatever the program's is like
  uint32_t depth = 4;     // steps that run ahead of the caller
};

// What the metadata methods say, with what the program's tensors say where they are silent.
struct ModelInfo {
  int64_t vocabulary = 0;  // width of the logits
  int64_t context = 0;     // positions that the caches hold
  int64_t chunk = 0;       // tokens that one call takes
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;
};

class Model {
 public:
  // Errors: those of Session::load, kUnsupported for a program that is not a language model with a
  // KV cache, kInvalidProgram for a tokenizer that does not fit it.
  static Result<std::unique_ptr<Model>> load(const std::string& path, const ModelOptions& options);

  const ModelInfo& info() const { return info_; }
  Session& session() { return session_; }
  Steps& steps() { return steps_; }
  // Null where the program has none, and none was given.
  const llm::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  std::string_view chat_template() const { return chat_template_; }

 private:
  Model(Session session, Steps steps) : session_(std::move(session)), steps_(std::move(steps)) {}
  Status read_info();
  Status read_tokenizer(const std::string& file);

  Session session_;
  Steps steps_;
  ModelInfo info_;
  llm::TokenizerPtr tokenizer_;
  std::string chat_template_;
};

}  // namespace pteryx::generate

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

#include "pteryx/base/source.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/steps.h"

namespace pteryx::generate {

struct ModelOptions {
  LoadOptions load = {};
  SourcePtr tokenizer = nullptr;  // takes the place of the program's own
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
  // Waits until it is loaded. Errors: those of Session::load, kUnsupported for a program that is
  // not a language model with a KV cache, kInvalidProgram for a tokenizer that does not fit it.
  static Result<std::unique_ptr<Model>> load(const std::string& path, const ModelOptions& options);

  const ModelInfo& info() const { return info_; }
  Session& session() { return session_; }
  Steps& steps() const { return *steps_; }
  // Null where the program has none, and none was given.
  const llm::Tokenizer* tokenizer() const { return tokenizer_.get(); }
  std::string_view chat_template() const { return chat_template_; }

 private:
  friend class ModelLoad;
  explicit Model(Session session) : session_(std::move(session)) {}
  Status open(const std::string& name, uint32_t depth);
  Status read_info();
  Status take(llm::TokenizerPtr tokenizer);

  Session session_;
  std::unique_ptr<Steps> steps_;
  ModelInfo info_;
  llm::TokenizerPtr tokenizer_;
  std::string chat_template_;
};

// A model that is being loaded: never waits, see SessionLoad.
class ModelLoad {
 public:
  // `data`: .ptd files. Errors of advance(): those of Model::load.
  ModelLoad(const SourcePtr& program, std::vector<SourcePtr> data, ModelOptions options);
  Result<bool> advance();
  std::unique_ptr<Model> take() { return std::move(model_); }

 private:
  enum class Stage : uint8_t { kSession, kTokenizer, kDone };

  Status begin_tokenizer();
  Status fetch(const SourcePtr& source);
  Status finish_tokenizer();

  std::string name_;
  ModelOptions options_;
  SessionLoad session_;
  Stage stage_ = Stage::kSession;
  std::unique_ptr<Model> model_;
  std::vector<FetchedBytes> texts_;  // chat template, tokenizer, what kind it is
};

}  // namespace pteryx::generate

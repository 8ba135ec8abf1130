// Language models: load one, hold conversations with it, get text.
//
//   #include <pteryx/llm.h>
//
//   auto model = pteryx::llm::Model::load("smollm2.pte");
//   if (!model.ok()) return fail(model.status().message());
//   auto chat = pteryx::llm::Chat::of(**model);
//   auto sequence = pteryx::llm::Sequence::create(**model);
//   auto prompt = chat->prompt({{.role = "user", .content = "Why is the sky blue?"}});
//
//   pteryx::llm::Generator generator(**sequence);
//   generator.begin(*prompt, {.max_new_tokens = 200});
//   while (!generator.done()) {
//     auto piece = generator.step();
//     if (!piece.ok()) return fail(piece.status().message());
//     std::cout << piece->text << std::flush;
//   }
//
// Model::load and Generator::step wait; ModelLoad and Generator::advance do the same as jobs, where
// nothing may. A model and its sequences are used by one thread at a time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/sampling.h"
#include "pteryx/base/source.h"
#include "pteryx/base/status.h"
#include "pteryx/base/token.h"
#include "pteryx/llm/chat/message.h"
#include "pteryx/pteryx.h"

namespace pteryx {
class Steps;
}

namespace pteryx::llm {

class Sequence;
class StreamDecoder;
class Tokenizer;
namespace chat {
class Template;
}

// ---------------------------------------------------------------- models

struct ModelOptions {
  LoadOptions load = {};
  std::shared_ptr<const Source> tokenizer = nullptr;  // takes the place of the program's own
  bool ids_only = false;  // no tokenizer is read: none is needed, whatever the program's is like
  uint32_t depth = 4;     // steps that run ahead of the caller
};

// What the metadata methods say, with what the program's tensors say where they are silent.
struct ModelInfo {
  int64_t vocabulary = 0;  // width of the logits
  int64_t context = 0;     // positions that the caches of a sequence hold
  int64_t chunk = 0;       // tokens that one call takes
  std::optional<TokenId> bos;
  std::vector<TokenId> eos;
};

// Weights, tokenizer, chat template, and what the metadata say.
class Model {
 public:
  // Waits until it is loaded. Errors: those of Session::load, kUnsupported for a program that is
  // not a language model with a KV cache, kInvalidProgram for a tokenizer that does not fit it.
  static Result<std::unique_ptr<Model>> load(const std::string& path,
                                             const ModelOptions& options = {});
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const std::string& name() const { return name_; }  // for messages: the path of the file
  const ModelInfo& info() const { return info_; }
  Session& session() { return session_; }
  std::string_view chat_template() const { return chat_template_; }  // empty: none
  // Null where the program has none, and none was given.
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }

  // A text as a prompt: with what the tokenizer puts in front of texts, and special tokens spelled
  // out taken for themselves. Errors: kInvalidArgument where there is no tokenizer.
  Result<std::vector<TokenId>> encode(std::string_view text) const;
  Result<std::string> decode(std::span<const TokenId> ids) const;
  // Errors: kInvalidArgument for an id outside the vocabulary, with its place.
  Status check(std::span<const TokenId> ids) const;

 private:
  friend class ModelLoad;
  friend class Sequence;
  Model(std::string name, Session session, uint32_t depth);
  Status read_info();
  Status take(std::unique_ptr<const Tokenizer> tokenizer);

  std::string name_;
  Session session_;
  uint32_t depth_;
  bool lends_caches_ = false;  // some sequence has those of the session
  ModelInfo info_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::string chat_template_;
};

// A model that is being loaded: never waits, see SessionLoad.
class ModelLoad {
 public:
  // `data`: .ptd files. Errors of advance(): those of Model::load.
  ModelLoad(const std::shared_ptr<const Source>& program,
            std::vector<std::shared_ptr<const Source>> data, ModelOptions options);
  Result<bool> advance();
  std::unique_ptr<Model> take() { return std::move(model_); }

 private:
  enum class Stage : uint8_t { kSession, kTokenizer, kDone };

  Status begin_tokenizer();
  Status fetch(const std::shared_ptr<const Source>& source);
  Status finish_tokenizer();

  std::string name_;
  ModelOptions options_;
  SessionLoad session_;
  Stage stage_ = Stage::kSession;
  std::unique_ptr<Model> model_;
  std::vector<FetchedBytes> texts_;  // chat template, tokenizer, what kind it is
};

// ---------------------------------------------------------------- sequences

// One conversation: the tokens that its caches hold. Several live on one model, each with caches of
// its own, and are used in turn.
class Sequence {
 public:
  // Empty. The model outlives it. Errors: kUnsupported; that there is no memory is found when it is
  // used.
  static Result<std::unique_ptr<Sequence>> create(Model& model);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  Model& model() const { return *model_; }
  // Tokens whose rows the caches hold, by position.
  const std::vector<TokenId>& ids() const { return ids_; }
  // Forgets all but the first `count` tokens.
  void trim(size_t count);
  // Another one that holds the same; copied on the GPU.
  Result<std::unique_ptr<Sequence>> fork() const;
  // Takes what SequenceBytes read of a sequence of the same model. Errors: kInvalidArgument where
  // it is of another; then nothing has changed.
  Status restore(Bytes bytes);
  // All of it as bytes; waits for them. Errors: kMemory, kDevice.
  Result<std::vector<std::byte>> save() const;

  // For those who measure: the steps of the model, whose caches this sequence owns.
  Steps& steps() const { return *steps_; }

 private:
  friend class Generator;
  explicit Sequence(Model& model);

  Model* model_;
  bool borrows_caches_ = false;  // of the session
  std::unique_ptr<Steps> steps_;
  std::vector<TokenId> ids_;
};

// A sequence as bytes, as a job. Nothing else is done with it meanwhile.
class SequenceBytes {
 public:
  explicit SequenceBytes(const Sequence& sequence);
  ~SequenceBytes();
  // True once take() has them. Errors: kMemory, kDevice.
  Result<bool> advance();
  std::vector<std::byte> take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---------------------------------------------------------------- text

enum class StopReason : uint8_t {
  kNone,      // not stopped
  kEnd,       // the model ended its text
  kStopId,    // one of GenerateOptions::stop_ids
  kStopText,  // one of GenerateOptions::stop
  kLength,    // max_new_tokens
  kContext,   // no position is left
  kCancelled,
};
std::string_view name(StopReason reason);

struct GenerateOptions {
  Sampling sampling = {};
  int64_t max_new_tokens = -1;         // -1: as many as there are positions
  std::vector<std::string> stop = {};  // text ends before the first of these
  std::vector<TokenId> stop_ids = {};
  bool ignore_end = false;
  bool shift = false;              // at the end of the context, forget the older half and go on
  bool log_probabilities = false;  // of drawn tokens, by the softmax of the logits as they are
  // The prompt is read in pieces that take a fraction of a second each, so that the caller can show
  // how far it is and cancel; costs a little speed.
  bool responsive = false;
};

struct Piece {
  std::optional<TokenId> token;  // none while the prompt is read
  std::string text;              // what is complete with it, UTF-8
  std::optional<double> log_probability;
};

struct Timings {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompt, found in the caches
  int64_t new_tokens = 0;
  double prompt_ms = 0;  // until the first token was there
  double decode_ms = 0;  // from the first token to the last

  // Tokens per second: of the prompt what was not cached, of the text what followed its first.
  double prompt_speed() const { return speed(prompt_tokens - cached_tokens, prompt_ms); }
  double decode_speed() const { return speed(new_tokens - 1, decode_ms); }

 private:
  static double speed(int64_t tokens, double ms) {
    return tokens > 0 && ms > 0 ? static_cast<double>(tokens) / ms * 1e3 : 0;
  }
};

// Text from a model, as a job: the command line, a server and a page drive it alike.
class Generator {
 public:
  // The sequence outlives it.
  explicit Generator(Sequence& sequence);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // Starts on a text given as ids: a whole conversation so far. What the sequence has of it already
  // is not computed again. Errors: kInvalidArgument for ids outside the vocabulary, no ids, or more
  // than the context has room for.
  Status begin(std::span<const TokenId> ids, const GenerateOptions& options);
  // Reads a chunk of the prompt, or gives the next token; true once piece() is there. Errors, which
  // end the text: kInvalidProgram where the model's logits are not finite, kDevice.
  Result<bool> advance();
  // What advance() made; the next call of it makes another.
  Piece piece();
  // Both, waiting.
  Result<Piece> step();

  void cancel();
  bool done() const { return reason_ != StopReason::kNone; }
  StopReason reason() const { return reason_; }
  const Timings& timings() const { return timings_; }
  // The prompt and all tokens drawn since begin, the one that ended the text left out.
  const std::vector<TokenId>& ids() const { return ids_; }
  // How many tokens of the prompt the caches hold so far.
  int64_t prompt_read() const { return static_cast<int64_t>(read_); }

 private:
  using Clock = std::chrono::steady_clock;
  // What was begun with the sequence's steps, and is done once they say so.
  enum class Phase : uint8_t {
    kNothing,
    kFeeding,   // a chunk of the prompt goes into the caches
    kTiming,    // the same, waited for, so that the caller hears how far it is
    kStarting,  // the end of the prompt, which draws the first token
    kLogits,    // a token with its logits
    kDrawing,   // tokens, some of them ahead
  };

  Result<bool> proceed();
  Result<bool> take_logits();
  Result<bool> take_token();
  Status begin_chunk();
  size_t next_chunk() const;
  void finish_chunk();
  void note_time();
  bool wants_more() const;
  Status accept(TokenId token, std::optional<double> log_probability);
  void emit(const std::string& text, Piece& piece);
  void stop(StopReason reason, Piece& piece);
  void shift();

  Sequence& sequence_;
  GenerateOptions options_;
  std::vector<TokenId> ids_;
  std::vector<TokenId> input_;   // what is read before tokens are drawn
  size_t read_ = 0;              // of it
  size_t chunk_ = 0;             // tokens of it that are read now
  size_t timed_chunk_ = 32;      // tokens to read at once where the caller wants a say, as learnt
  std::optional<TokenId> last_;  // drawn, and perhaps not yet in the caches
  int64_t position_ = 0;         // of the next step
  std::unique_ptr<StreamDecoder> decoder_;
  std::string held_;  // text that may be the beginning of a stop text
  StopReason reason_ = StopReason::kCancelled;
  Phase phase_ = Phase::kNothing;
  std::optional<Piece> piece_;
  Timings timings_;
  Clock::time_point started_;
  Clock::time_point chunk_started_;
  Clock::time_point first_;
};

// ---------------------------------------------------------------- conversations

struct PromptOptions {
  std::string tools = {};  // what the model may call: a JSON list; empty: none
};

// Makes prompts of messages, with the model's chat template where it has one and as "User: ...",
// "Assistant: ..." where it has none.
class Chat {
 public:
  // The model outlives it. Errors: kInvalidArgument where it has no tokenizer, kInvalidProgram and
  // kUnsupported for its template.
  static Result<Chat> of(const Model& model);

  bool has_template() const { return template_ != nullptr; }
  // The conversation, up to where the answer begins. Errors: kInvalidArgument for what the template
  // or the tokenizer refuses.
  Result<std::vector<TokenId>> prompt(const std::vector<Message>& messages,
                                      const PromptOptions& options = {}) const;

 private:
  explicit Chat(const Model& model) : model_(&model) {}

  const Model* model_;
  std::shared_ptr<const chat::Template> template_;
};

}  // namespace pteryx::llm

// Text from a language model, as a job: the command line, a server and a page drive it alike.
//
//   Generator g(model);
//   PTERYX_TRY(g.begin(ids, options));
//   while (!g.done()) {
//     PTERYX_ASSIGN(const Piece piece, g.step());  // or advance(), where nothing may wait
//     show(piece.text);
//   }
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pteryx/generate/model.h"

namespace pteryx::generate {

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
  ops::SampleSettings sampling = {};
  int64_t max_new_tokens = -1;         // -1: as many as there are positions
  std::vector<std::string> stop = {};  // text ends before the first of these
  std::vector<int64_t> stop_ids = {};
  bool ignore_end = false;
  bool shift = false;              // at the end of the context, forget the older half and go on
  bool log_probabilities = false;  // of drawn tokens, by the softmax of the logits as they are
  // The prompt is read in pieces that take a fraction of a second each, so that the caller can show
  // how far it is and cancel; costs a little speed.
  bool responsive = false;
};

struct Piece {
  std::optional<int64_t> token;  // none while the prompt is read
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

class Generator {
 public:
  explicit Generator(Model& model) : model_(model) {}

  // Starts on a text given as ids: a whole conversation so far. What the caches have of it already
  // is not computed again. Errors: kInvalidArgument for ids outside the vocabulary, no ids, or more
  // than the context has room for.
  Status begin(std::span<const int64_t> ids, const GenerateOptions& options);
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
  const std::vector<int64_t>& ids() const { return ids_; }
  // How many tokens of the prompt the caches hold so far.
  int64_t prompt_read() const { return static_cast<int64_t>(read_); }
  // Forgets what the caches hold.
  void reset() { cached_.clear(); }

 private:
  using Clock = std::chrono::steady_clock;

  // What was begun with the model's steps, and is done once they say so.
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
  Status accept(int64_t token, std::optional<double> log_probability);
  void emit(const std::string& text, Piece& piece);
  void stop(StopReason reason, Piece& piece);
  void shift();

  Model& model_;
  GenerateOptions options_;
  std::vector<int64_t> ids_;
  std::vector<int64_t> input_;   // what is read before tokens are drawn
  size_t read_ = 0;              // of it
  size_t chunk_ = 0;             // tokens of it that are read now
  size_t timed_chunk_ = 0;       // tokens of it to read at once, where the caller wants a say
  std::vector<int64_t> cached_;  // tokens whose rows the caches hold, by position
  std::optional<int64_t> last_;  // drawn, and perhaps not yet in the caches
  int64_t position_ = 0;         // of the next step
  std::optional<llm::StreamDecoder> decoder_;
  std::string held_;  // text that may be the beginning of a stop text
  StopReason reason_ = StopReason::kCancelled;
  Phase phase_ = Phase::kNothing;
  std::optional<Piece> piece_;
  Timings timings_;
  Clock::time_point started_;
  Clock::time_point chunk_started_;
  Clock::time_point first_;
};

}  // namespace pteryx::generate

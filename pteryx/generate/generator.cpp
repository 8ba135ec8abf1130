// The machine that makes text. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "pteryx/llm.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/session/steps.h"

namespace pteryx::llm {
namespace {

double ms_between(std::chrono::steady_clock::time_point a,
                  std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

double log_probability(std::span<const float> logits, TokenId token) {
  double peak = logits[0];
  for (const float v : logits) peak = std::max(peak, static_cast<double>(v));
  double sum = 0;
  for (const float v : logits) sum += std::exp(v - peak);
  return logits[token] - peak - std::log(sum);
}

// Chunks of a prompt that a caller wants a say in between: of the first one so many tokens at
// first, then as many as take about so long.
constexpr size_t kSmallestChunk = 8;
constexpr double kChunkMs = 200;

// How much of the end of `text` could be the beginning of `stop`.
size_t overlap(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.substr(text.size() - n) == stop.substr(0, n)) return n;
  }
  return 0;
}

bool contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::string_view name(StopReason reason) {
  switch (reason) {
    case StopReason::kNone: return "none";
    case StopReason::kEnd: return "end";
    case StopReason::kStopId: return "stop id";
    case StopReason::kStopText: return "stop text";
    case StopReason::kLength: return "length";
    case StopReason::kContext: return "context";
    case StopReason::kCancelled: return "cancelled";
  }
  return "";
}

Generator::Generator(Sequence& sequence) : sequence_(sequence) {}
Generator::~Generator() = default;

Status Generator::begin(std::span<const TokenId> ids, const GenerateOptions& options) {
  sequence_.steps().discard();
  reason_ = StopReason::kCancelled;
  phase_ = Phase::kNothing;
  piece_.reset();
  const ModelInfo& info = sequence_.model().info();
  if (ids.empty()) return invalid_argument("the prompt has no tokens");
  if (static_cast<int64_t>(ids.size()) > info.context) {
    return invalid_argument(fmt::format("the prompt has {} tokens, the context has room for {}",
                                        ids.size(), info.context));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < info.vocabulary) continue;
    return invalid_argument(fmt::format(
        "token {} of the prompt is {}, outside the vocabulary of {}", i, ids[i], info.vocabulary));
  }
  options_ = options;
  std::erase(options_.stop, "");
  if (options_.sampling.vocabulary == 0 && sequence_.model().tokenizer() != nullptr)
    options_.sampling.vocabulary = static_cast<uint32_t>(sequence_.model().tokenizer()->size());
  sequence_.steps().set(options_.sampling);
  ids_.assign(ids.begin(), ids.end());
  input_ = ids_;
  const auto differ =
      std::mismatch(sequence_.ids_.begin(), sequence_.ids_.end(), ids.begin(), ids.end());
  read_ = std::min(static_cast<size_t>(differ.first - sequence_.ids_.begin()), ids.size() - 1);
  sequence_.ids_.resize(read_);
  position_ = static_cast<int64_t>(read_);
  timings_ = {.prompt_tokens = static_cast<int64_t>(ids.size()),
              .cached_tokens = static_cast<int64_t>(read_)};
  last_.reset();
  held_.clear();
  decoder_.reset();
  if (const Tokenizer* const tokenizer = sequence_.model().tokenizer())
    decoder_ = std::make_unique<StreamDecoder>(*tokenizer, Specials::kSkip, TextStart::kContinued);
  started_ = Clock::now();
  reason_ = options_.max_new_tokens == 0 ? StopReason::kLength : StopReason::kNone;
  return {};
}

Result<bool> Generator::advance() {
  if (piece_) return true;
  if (done()) return invalid_argument("the text is complete: begin another");
  auto there = proceed();
  // Steps that ran ahead of one that failed have read no token of the text: they end with it.
  if (!there.ok()) cancel();
  return there;
}

Piece Generator::piece() {
  Piece piece = piece_ ? std::move(*piece_) : Piece{};
  piece_.reset();
  return piece;
}

Result<bool> Generator::proceed() {
  Steps& steps = sequence_.steps();
  for (;;) {
    PTERYX_ASSIGN(const bool begun, steps.advance());
    if (!begun) return false;
    switch (phase_) {
      case Phase::kNothing:
        if (read_ < input_.size()) {
          PTERYX_TRY(begin_chunk());
        } else if (options_.log_probabilities) {
          PTERYX_TRY(steps.run(std::span(&ids_.back(), 1), position_));
          phase_ = Phase::kLogits;
        } else {
          phase_ = Phase::kDrawing;
        }
        break;
      case Phase::kFeeding:
        finish_chunk();
        piece_.emplace();
        return true;
      case Phase::kTiming: {
        PTERYX_ASSIGN(const std::optional<TokenId> known, steps.take());
        if (!known) return false;
        note_time();
        finish_chunk();
        piece_.emplace();
        return true;
      }
      case Phase::kStarting:
        finish_chunk();
        phase_ = Phase::kDrawing;
        break;
      case Phase::kLogits: return take_logits();
      case Phase::kDrawing:
        // A token that is there does not wait for a step to be encoded, while the GPU has work.
        if (!wants_more() || steps.under_way() > 1) {
          PTERYX_ASSIGN(const bool taken, take_token());
          if (taken || !wants_more()) return taken;
        }
        PTERYX_TRY(steps.start_next(position_));
        ++position_;
        break;
    }
  }
}

size_t Generator::next_chunk() const {
  const auto largest = static_cast<size_t>(sequence_.model().info().chunk);
  return std::min(input_.size() - read_,
                  options_.responsive ? std::min(timed_chunk_, largest) : largest);
}

// The last one draws the first token. Of the others nothing comes back, unless the caller wants to
// hear of them.
Status Generator::begin_chunk() {
  Steps& steps = sequence_.steps();
  chunk_ = next_chunk();
  chunk_started_ = Clock::now();
  const std::span<const TokenId> tokens = std::span(input_).subspan(read_, chunk_);
  const bool last = read_ + chunk_ == input_.size();
  if (last && options_.log_probabilities) {
    phase_ = Phase::kLogits;
    return steps.run(tokens, position_);
  }
  if (last || options_.responsive) {
    phase_ = last ? Phase::kStarting : Phase::kTiming;
    return steps.start(tokens, position_);
  }
  phase_ = Phase::kFeeding;
  return steps.feed(tokens, position_);
}

void Generator::finish_chunk() {
  const auto begin = input_.begin() + static_cast<ptrdiff_t>(read_);
  sequence_.ids_.insert(sequence_.ids_.end(), begin, begin + static_cast<ptrdiff_t>(chunk_));
  read_ += chunk_;
  position_ += static_cast<int64_t>(chunk_);
  phase_ = Phase::kNothing;
}

void Generator::note_time() {
  const double ms = ms_between(chunk_started_, Clock::now());
  const bool compiled = read_ > static_cast<size_t>(timings_.cached_tokens);
  const auto largest = static_cast<size_t>(sequence_.model().info().chunk);
  // Twice as many take twice as long at most.
  double next = ms;
  while (next < kChunkMs / 2 && timed_chunk_ < largest) {
    timed_chunk_ *= 2;
    next *= 2;
  }
  if (ms > kChunkMs * 2 && compiled && timed_chunk_ > kSmallestChunk) timed_chunk_ /= 2;
}

Result<bool> Generator::take_logits() {
  const Steps::Drawn& drawn = sequence_.steps().drawn();
  if (read_ < input_.size()) {
    finish_chunk();
  } else {
    ++position_;
  }
  phase_ = Phase::kNothing;
  PTERYX_TRY(accept(drawn.token, log_probability(drawn.logits, drawn.token)));
  return true;
}

Result<bool> Generator::take_token() {
  PTERYX_ASSIGN(const std::optional<TokenId> token, sequence_.steps().take());
  if (!token) return false;
  phase_ = Phase::kNothing;
  PTERYX_TRY(accept(*token, std::nullopt));
  return true;
}

// Whether another step may run ahead and can be of use.
bool Generator::wants_more() const {
  const Steps& steps = sequence_.steps();
  if (!steps.can_start()) return false;
  const int64_t drawn = timings_.new_tokens + steps.under_way();
  const bool enough = options_.max_new_tokens >= 0 && drawn >= options_.max_new_tokens;
  return !enough && position_ < sequence_.model().info().context;
}

Status Generator::accept(TokenId token, std::optional<double> log_probability) {
  const Clock::time_point now = Clock::now();
  if (timings_.new_tokens == 0) {
    timings_.prompt_ms = ms_between(started_, now);
    first_ = now;
  }
  timings_.decode_ms = ms_between(first_, now);
  if (last_) sequence_.ids_.push_back(*last_);  // the step that drew this one read it
  last_ = token;
  Piece& piece =
      piece_.emplace(Piece{.token = token, .text = {}, .log_probability = log_probability});
  if (!options_.ignore_end && contains(sequence_.model().info().eos, token)) {
    stop(StopReason::kEnd, piece);
    return {};
  }
  if (contains(options_.stop_ids, token)) {
    stop(StopReason::kStopId, piece);
    return {};
  }
  ids_.push_back(token);
  ++timings_.new_tokens;
  if (decoder_) {
    PTERYX_ASSIGN(const std::string text, decoder_->push(token));
    emit(text, piece);
  }
  if (!done() && timings_.new_tokens == options_.max_new_tokens) stop(StopReason::kLength, piece);
  const bool out_of_room =
      position_ >= sequence_.model().info().context && sequence_.steps().under_way() == 0;
  if (!done() && out_of_room) {
    if (options_.shift) {
      shift();
    } else {
      stop(StopReason::kContext, piece);
    }
  }
  return {};
}

// Text goes out unless it may be the beginning of a stop text.
void Generator::emit(const std::string& text, Piece& piece) {
  held_ += text;
  size_t end = std::string::npos;
  for (const std::string& s : options_.stop) end = std::min(end, held_.find(s));
  if (end != std::string::npos) {
    held_.resize(end);
    decoder_.reset();
    stop(StopReason::kStopText, piece);
    return;
  }
  size_t keep = 0;
  for (const std::string& s : options_.stop) keep = std::max(keep, overlap(held_, s));
  piece.text = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
}

void Generator::stop(StopReason reason, Piece& piece) {
  reason_ = reason;
  if (decoder_) held_ += decoder_->finish();
  piece.text += held_;
  held_.clear();
  // What steps that ran ahead wrote into the caches stands behind the end of the text.
  sequence_.steps().discard();
}

// The newer half of the text, behind its first token, is read again from position 0 on.
void Generator::shift() {
  const auto context = static_cast<size_t>(sequence_.model().info().context);
  const size_t kept = std::max<size_t>(context / 2, 1);
  std::vector<TokenId> text = sequence_.ids_;
  text.push_back(*last_);
  input_.assign(text.end() - static_cast<ptrdiff_t>(std::min(kept, text.size())), text.end());
  if (sequence_.model().info().bos && !text.empty() &&
      text.front() == *sequence_.model().info().bos)
    input_.front() = text.front();
  sequence_.ids_.clear();
  last_.reset();
  read_ = 0;
  position_ = 0;
}

void Generator::cancel() {
  if (done()) return;
  Piece ignored;
  stop(StopReason::kCancelled, ignored);
  piece_.reset();
}

}  // namespace pteryx::llm

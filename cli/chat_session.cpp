// Answering. SPDX-License-Identifier: BSD-3-Clause
#include "chat_session.h"

#include <limits>

#include <fmt/format.h>

#include "chat_commands.h"
#include "terminal_text.h"

namespace pteryx::cli {
namespace {

void print_timings(const llm::Generator& g) {
  const llm::Timings& t = g.timings();
  note(
      "prompt {} tokens, {} of them cached, {:.1f} ms; answer {} tokens, {:.1f} ms, "
      "{:.1f} tokens/s (stopped by: {})\n",
      t.prompt_tokens, t.cached_tokens, t.prompt_ms, t.new_tokens, t.decode_ms, t.decode_speed(),
      name(g.reason()));
}

template <Number T>
Status set_number(T& target, std::string_view name, std::string_view value, Bounds<T> bounds) {
  const std::string problem = number_problem(value, bounds);
  if (!problem.empty()) return invalid_argument(fmt::format("{}: {}", name, problem));
  target = *parse_number<T>(value);
  return {};
}

}  // namespace

ChatSession::ChatSession(llm::Sequence& sequence, llm::Chat chat, ChatOptions options)
    : sequence_(sequence),
      chat_(std::move(chat)),
      options_(std::move(options)),
      generator_(sequence) {
  if (!chat_.has_template()) options_.generate.stop.emplace_back("\nUser:");
}

Result<ChatSession::Outcome> ChatSession::say(std::string text) {
  turns_.push_back({.role = "user", .content = std::move(text)});
  auto outcome = answer();
  if (outcome.ok() && *outcome != Outcome::kTakenBack) return outcome;
  turns_.pop_back();
  if (outcome.ok()) return outcome;
  return std::move(outcome).status().during("answering (the message was taken back)");
}

Result<ChatSession::Outcome> ChatSession::regenerate() {
  std::optional<llm::Message> before;
  if (!turns_.empty() && turns_.back().role == "assistant") {
    before = std::move(turns_.back());
    turns_.pop_back();
  }
  const bool asked = !turns_.empty() && turns_.back().role == "user";
  auto outcome = asked ? answer() : invalid_argument("there is no message to answer again");
  const bool kept = !outcome.ok() || *outcome == Outcome::kTakenBack;
  if (kept && before) turns_.push_back(std::move(*before));
  return outcome;
}

Result<std::string> ChatSession::undo() {
  size_t last = turns_.size();
  while (last > 0 && turns_[last - 1].role != "user") --last;
  if (last == 0) return invalid_argument("there is no message to take back");
  std::string text = std::move(turns_[last - 1].content);
  turns_.resize(last - 1);
  if (forgotten_ >= turns_.size()) forgotten_ = 0;
  return text;
}

void ChatSession::reset() {
  turns_.clear();
  forgotten_ = 0;
}

void ChatSession::set_messages(Messages messages) {
  reset();
  system_.clear();
  if (!messages.empty() && messages.front().role == "system") {
    system_ = std::move(messages.front().content);
    messages.erase(messages.begin());
  }
  turns_ = std::move(messages);
}

Status ChatSession::set(std::string_view name, std::string_view value) {
  llm::GenerateOptions& o = options_.generate;
  if (name == "max-new-tokens") {
    return set_number<int64_t>(o.max_new_tokens, name, value,
                               {-1, std::numeric_limits<int32_t>::max()});
  }
  if (name == "seed") {
    return set_number<uint64_t>(o.sampling.seed, name, value,
                                {0, std::numeric_limits<uint64_t>::max()});
  }
  return set_sampling(o.sampling, name, value);
}

std::string ChatSession::setting(std::string_view name) const {
  const llm::GenerateOptions& o = options_.generate;
  const Sampling& s = o.sampling;
  if (name == "temperature") return fmt::format("{}", s.temperature);
  if (name == "top-k") return fmt::format("{}", s.top_k);
  if (name == "top-p") return fmt::format("{}", s.top_p);
  if (name == "min-p") return fmt::format("{}", s.min_p);
  if (name == "repetition-penalty") return fmt::format("{}", s.repetition);
  if (name == "presence-penalty") return fmt::format("{}", s.presence);
  if (name == "frequency-penalty") return fmt::format("{}", s.frequency);
  if (name == "seed") return fmt::format("{}", s.seed);
  if (name == "max-new-tokens") {
    return o.max_new_tokens < 0 ? "-1 (until the context is full)"
                                : fmt::format("{}", o.max_new_tokens);
  }
  return "";
}

Result<int64_t> ChatSession::used() const {
  const Messages told = messages_from(forgotten_);
  if (told.empty()) return int64_t{0};
  PTERYX_ASSIGN(const auto ids, chat_.prompt(told));
  return static_cast<int64_t>(ids.size());
}

Messages ChatSession::messages_from(size_t first) const {
  Messages all;
  if (!system_.empty()) all.push_back({.role = "system", .content = system_});
  all.insert(all.end(), turns_.begin() + static_cast<ptrdiff_t>(first), turns_.end());
  return all;
}

// The prompt. With GenerateOptions::shift, what no longer fits is forgotten until half of the
// context is free, so that the caches are of use for some turns.
Result<std::vector<TokenId>> ChatSession::encode() {
  const auto room = static_cast<size_t>(context());
  PTERYX_ASSIGN(auto ids, chat_.prompt(messages_from(forgotten_)));
  const size_t before = forgotten_;
  if (ids.size() > room && options_.generate.shift) {
    while (ids.size() > room / 2 && forget_oldest()) {
      PTERYX_ASSIGN(ids, chat_.prompt(messages_from(forgotten_)));
    }
  }
  if (ids.size() > room) {
    forgotten_ = before;
    return invalid_argument(
        fmt::format("the conversation has {} tokens with this message, the context has room for "
                    "{}\n  {}",
                    ids.size(), room, options_.context_advice));
  }
  if (forgotten_ > before)
    note("(the context is full: the model forgets the {} oldest messages)\n", forgotten_ - before);
  return ids;
}

// A message of the user's and its answer; false where that is the last.
bool ChatSession::forget_oldest() {
  for (size_t i = forgotten_ + 1; i < turns_.size(); ++i) {
    if (turns_[i].role != "user") continue;
    forgotten_ = i;
    return true;
  }
  return false;
}

Result<ChatSession::Outcome> ChatSession::answer() {
  std::string text;
  PTERYX_ASSIGN(const bool stopped, generate(text));
  if (stopped && text.empty()) return Outcome::kTakenBack;
  turns_.push_back({.role = "assistant", .content = std::move(text)});
  if (options_.stream) write("\n");
  if (!flush()) return Outcome::kStopped;
  if (generator_.reason() == llm::StopReason::kContext)
    note("pteryx: the context of {} tokens is full\n  {}\n", context(), options_.context_advice);
  if (options_.timings) print_timings(generator_);
  return stopped ? Outcome::kStopped : Outcome::kAnswered;
}

// What the model says until it ends; true where somebody interrupts, or nobody reads it any more.
Result<bool> ChatSession::generate(std::string& text) {
  Progress progress("reading the prompt");
  watch_compilation(progress, sequence_.model().session().device());
  PTERYX_ASSIGN(const auto ids, encode());
  PTERYX_TRY(generator_.begin(ids, options_.generate));
  ++options_.generate.sampling.seed;  // so that a question asked again may have another answer
  while (!generator_.done()) {
    progress.set(static_cast<uint64_t>(generator_.prompt_read()), ids.size());
    auto piece = generator_.step();
    if (!piece.ok()) {
      if (options_.stream && !text.empty()) write("\n");
      flush();
      return std::move(piece).status();
    }
    const bool interrupted = InterruptGuard::interrupted();
    if (!interrupted && !piece->text.empty()) {
      progress.end();
      text += piece->text;
      if (options_.stream) write_text(piece->text);
    }
    if (interrupted || !flush()) {
      generator_.cancel();
      return true;
    }
  }
  return false;
}

}  // namespace pteryx::cli

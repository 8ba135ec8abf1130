// A conversation and the model that answers in it. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conversation.h"
#include "model.h"

namespace pteryx::cli {

struct ChatOptions {
  llm::GenerateOptions generate;
  bool stream = true;          // print answers as they come
  bool timings = false;        // print how long each took
  std::string context_advice;  // what to do where the context is full
};

class ChatSession {
 public:
  ChatSession(llm::Sequence& sequence, llm::Chat chat, ChatOptions options);

  enum class Outcome : uint8_t {
    kAnswered,
    kStopped,    // what was said until then is part of the conversation
    kTakenBack,  // stopped before a word was said: the conversation is as it was
  };
  // An interrupt stops it, where there is an InterruptGuard. Errors leave the conversation as it
  // was: those of llm::Chat and of Generator, kInvalidArgument where the context has no
  // room.
  Result<Outcome> say(std::string text);
  // Answers the last message again. Errors: as say, and kInvalidArgument where there is none.
  Result<Outcome> regenerate();

  // Takes the last message and its answer back and gives the message. Errors: kInvalidArgument
  // where there is none.
  Result<std::string> undo();
  void reset();  // the system message stays
  Messages messages() const { return messages_from(0); }
  void set_messages(Messages messages);
  const std::string& system() const { return system_; }  // empty: none
  void set_system(std::string text) { system_ = std::move(text); }

  // Of chat_settings(). Errors: kInvalidArgument.
  Status set(std::string_view name, std::string_view value);
  std::string setting(std::string_view name) const;

  // Tokens of the conversation. Errors: those of llm::Chat.
  Result<int64_t> used() const;
  int64_t context() const { return sequence_.model().info().context; }
  const llm::Generator& generator() const { return generator_; }

 private:
  Messages messages_from(size_t first) const;
  Result<std::vector<TokenId>> encode();
  bool forget_oldest();
  Result<Outcome> answer();
  Result<bool> generate(std::string& text);

  llm::Sequence& sequence_;
  llm::Chat chat_;
  ChatOptions options_;
  llm::Generator generator_;
  std::string system_;
  Messages turns_;        // all but the system message at the beginning
  size_t forgotten_ = 0;  // of them, at the beginning: the model is not told these any more
};

}  // namespace pteryx::cli

// What somebody says in a chat: messages of one line or several, and commands.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include "line_reader.h"

namespace pteryx::cli {

struct ChatEntry {
  enum class Kind : uint8_t {
    kMessage,
    kCommand,    // begins with '/'
    kInterrupt,  // Ctrl-C; the text is what it dropped
    kEnd,
  };
  Kind kind = Kind::kMessage;
  std::string text;  // UTF-8
};

// A line between """ and """ goes on until the second, one that ends in a backslash in the next
// line. The end of the input ends either.
class ChatInput {
 public:
  explicit ChatInput(Completions completions) : lines_(completions) {}

  bool at_terminal() const { return lines_.at_terminal(); }
  // Errors: those of LineReader::next.
  Result<ChatEntry> next();

 private:
  Result<Line> block(std::string first);
  Result<Line> continued(Line first);

  LineReader lines_;
};

}  // namespace pteryx::cli

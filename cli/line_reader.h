// Lines that a person types, or that come through a pipe. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"

namespace pteryx::cli {

struct Line {
  enum class Kind : uint8_t {
    kText,
    kInterrupt,  // Ctrl-C; the text is what had been typed
    kEnd,
  };
  Kind kind = Kind::kText;
  std::string text;  // without its end; text that was pasted may have ends of lines inside
};

// All that a line may become whose beginning is given.
using Completions = std::vector<std::string> (*)(std::string_view beginning);

class LineEditor;

// With editing, history and a prompt at a terminal; elsewhere lines as they are, and no prompt.
class LineReader {
 public:
  explicit LineReader(Completions completions);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool at_terminal() const { return editor_ != nullptr; }
  // Errors: kIo, kInvalidArgument for a line of more than 64 MiB.
  Result<Line> next(std::string_view prompt);

 private:
  Result<Line> next_from_pipe();

  std::unique_ptr<LineEditor> editor_;  // null where nobody types
  std::string bytes_;                   // from a pipe, not yet handed on from at_ on
  size_t at_ = 0;
};

}  // namespace pteryx::cli

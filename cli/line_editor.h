// A line that is edited at a terminal: history, completion, and pasted text that stays together.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string_view>

#include "line_reader.h"

namespace pteryx::cli {

class LineEditor {
 public:
  // Null where the terminal cannot be edited at.
  static std::unique_ptr<LineEditor> open(Completions completions);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // The prompt ends in a space.
  Line next(std::string_view prompt);

 private:
  struct State;
  explicit LineEditor(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pteryx::cli

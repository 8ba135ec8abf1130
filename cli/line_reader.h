// Lines that a person types, or that come through a pipe. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace pteryx::cli {

// With editing, history and a prompt at a terminal; elsewhere lines as they are, and no prompt.
class LineReader {
 public:
  LineReader();
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Without its end; none at the end of the input.
  std::optional<std::string> next();

 private:
  struct Editor;
  std::unique_ptr<Editor> editor_;  // null where nobody types
};

}  // namespace pteryx::cli

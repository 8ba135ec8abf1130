// Reading lines. SPDX-License-Identifier: BSD-3-Clause
#include "line_reader.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "line_editor.h"
#include "output.h"

namespace pteryx::cli {
namespace {

// Room for any message, and an end for a device that has none.
constexpr size_t kLongestLine = size_t{64} << 20;

}  // namespace

LineReader::LineReader(Completions completions) {
  if (stdin_is_terminal() && (stdout_is_terminal() || stderr_is_terminal()))
    editor_ = LineEditor::open(completions);
}

LineReader::~LineReader() = default;

Result<Line> LineReader::next(std::string_view prompt) {
  if (editor_ != nullptr) return editor_->next(prompt);
  return next_from_pipe();
}

Result<Line> LineReader::next_from_pipe() {
  Line line;
  while (true) {
    const size_t end = bytes_.find('\n', at_);
    line.text.append(bytes_, at_, end == std::string::npos ? end : end - at_);
    if (end != std::string::npos) {
      at_ = end + 1;
      break;
    }
    bytes_.clear();
    at_ = 0;
    if (line.text.size() > kLongestLine) {
      return invalid_argument(
          fmt::format("stdin: expected lines of at most {} MiB", kLongestLine >> 20));
    }
    std::array<char, 1 << 16> part{};
    const ssize_t n = ::read(STDIN_FILENO, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(fmt::format("stdin: {}", std::generic_category().message(errno)));
    if (n == 0) {
      if (line.text.empty()) line.kind = Line::Kind::kEnd;
      break;
    }
    bytes_.assign(part.data(), static_cast<size_t>(n));
  }
  while (line.text.ends_with('\r')) line.text.pop_back();
  return line;
}

}  // namespace pteryx::cli

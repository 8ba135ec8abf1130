// Messages of several lines. SPDX-License-Identifier: BSD-3-Clause
#include "chat_input.h"

#include "pteryx/base/utf8.h"

namespace pteryx::cli {
namespace {

constexpr std::string_view kPrompt = "> ";
constexpr std::string_view kContinuation = "... ";
constexpr std::string_view kQuotes = "\"\"\"";

// Takes the quotes off that end a block; false where there are none.
bool close_block(std::string& line) {
  const size_t end = line.find_last_not_of(" \t\r\n") + 1;
  if (!std::string_view(line).substr(0, end).ends_with(kQuotes)) return false;
  line.resize(end - kQuotes.size());
  return true;
}

}  // namespace

Result<ChatEntry> ChatInput::next() {
  PTERYX_ASSIGN(Line line, lines_.next(kPrompt));
  const bool quoted = line.kind == Line::Kind::kText && line.text.starts_with(kQuotes);
  if (quoted) {
    PTERYX_ASSIGN(line, block(line.text.substr(kQuotes.size())));
  } else if (line.kind == Line::Kind::kText) {
    PTERYX_ASSIGN(line, continued(std::move(line)));
  }
  ChatEntry entry{.text = replace_invalid(line.text)};
  if (line.kind == Line::Kind::kEnd) entry.kind = ChatEntry::Kind::kEnd;
  if (line.kind == Line::Kind::kInterrupt) entry.kind = ChatEntry::Kind::kInterrupt;
  if (line.kind != Line::Kind::kText || quoted) return entry;
  if (entry.text.starts_with("//") || entry.text.starts_with(" /")) {
    entry.text.erase(0, 1);
  } else if (entry.text.starts_with('/')) {
    entry.kind = ChatEntry::Kind::kCommand;
  }
  return entry;
}

Result<Line> ChatInput::block(std::string first) {
  Line all{.text = std::move(first)};
  if (close_block(all.text)) return all;
  bool begun = !all.text.empty();  // nothing behind the first quotes: the text begins below
  while (true) {
    PTERYX_ASSIGN(Line line, lines_.next(kContinuation));
    if (line.kind == Line::Kind::kEnd) return all;
    if (line.kind == Line::Kind::kInterrupt) {
      line.text = std::string(kQuotes) + all.text + line.text;
      return line;
    }
    const bool last = close_block(line.text);
    if (!last || !line.text.empty()) all.text += (begun ? "\n" : "") + line.text;
    if (last) return all;
    begun = true;
  }
}

// Two backslashes at the end are one that is meant.
Result<Line> ChatInput::continued(Line all) {
  while (all.text.ends_with('\\')) {
    all.text.pop_back();
    if (all.text.ends_with('\\')) break;
    PTERYX_ASSIGN(Line line, lines_.next(kContinuation));
    if (line.kind == Line::Kind::kEnd) break;
    line.text = all.text + "\n" + line.text;
    all = std::move(line);
    if (all.kind == Line::Kind::kInterrupt) break;
  }
  return all;
}

}  // namespace pteryx::cli

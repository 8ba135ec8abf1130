// Reading lines, through libedit at a terminal. SPDX-License-Identifier: BSD-3-Clause
#include "line_reader.h"

#include <clocale>
#include <cstdio>
#include <iostream>

#include <unistd.h>

#include <histedit.h>

namespace pteryx::cli {
namespace {

constexpr int kHistoryLines = 1000;

const char* prompt(EditLine* /*editor*/) { return "> "; }

void strip_end(std::string& line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
}

template <auto End>
struct Ender {
  void operator()(auto* handle) const { End(handle); }
};

}  // namespace

struct LineReader::Editor {
  Editor() : history(history_init()), edit(el_init("pteryx", stdin, stdout, stderr)) {
    if (!usable()) return;
    HistEvent event;
    ::history(history.get(), &event, H_SETSIZE, kHistoryLines);
    ::history(history.get(), &event, H_SETUNIQUE, 1);
    el_set(edit.get(), EL_PROMPT, prompt);
    el_set(edit.get(), EL_EDITOR, "emacs");
    el_set(edit.get(), EL_SIGNAL, 1);  // gives the terminal back before a signal ends the program
    el_set(edit.get(), EL_HIST, ::history, history.get());
    el_source(edit.get(), nullptr);
  }

  bool usable() const { return history != nullptr && edit != nullptr; }

  std::unique_ptr<History, Ender<history_end>> history;
  std::unique_ptr<EditLine, Ender<el_end>> edit;
};

LineReader::LineReader() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return;
  std::setlocale(LC_CTYPE, "");  // libedit takes characters apart by it
  editor_ = std::make_unique<Editor>();
  if (!editor_->usable()) editor_.reset();
}

LineReader::~LineReader() = default;

std::optional<std::string> LineReader::next() {
  std::string line;
  if (editor_ == nullptr) {
    if (!std::getline(std::cin, line)) return std::nullopt;
    strip_end(line);
    return line;
  }
  int count = 0;
  const char* const typed = el_gets(editor_->edit.get(), &count);
  if (typed == nullptr || count <= 0) {
    std::fputc('\n', stdout);
    return std::nullopt;
  }
  line.assign(typed, static_cast<size_t>(count));
  strip_end(line);
  HistEvent event;
  if (!line.empty()) history(editor_->history.get(), &event, H_ENTER, line.c_str());
  return line;
}

}  // namespace pteryx::cli

// The line editor, over libedit. SPDX-License-Identifier: BSD-3-Clause
#include "line_editor.h"

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <histedit.h>
#include <langinfo.h>

#include "output.h"
#include "terminal_input.h"

#include "pteryx/base/utf8.h"

namespace pteryx::cli {
namespace {

constexpr int kHistoryLines = 1000;
constexpr wchar_t kInterruptKey = 3;  // Ctrl-C
constexpr wchar_t kInterruptMark[] = L"^C";
constexpr wchar_t kEscapeMark = 1;  // around what a prompt has that takes no room

// While it is on, the terminal sends marks around text that is pasted.
constexpr std::string_view kPasteOn = "\033[?2004h";
constexpr std::string_view kPasteOff = "\033[?2004l";
constexpr std::wstring_view kPasteEnd = L"\033[201~";

std::wstring widen(std::string_view text) {
  std::wstring wide;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = char_at(text, at);
    wide += static_cast<wchar_t>(c.code);
    at += c.size_bytes;
  }
  return wide;
}

std::string narrow(std::wstring_view text) {
  std::string out;
  for (const wchar_t c : text) append_utf8(out, static_cast<char32_t>(c));
  return out;
}

// No control characters but newlines, which terminals send as carriage returns, and tabs.
std::wstring clean_paste(const std::wstring& text) {
  std::wstring clean;
  for (const wchar_t c : text) {
    if (c == L'\r') {
      clean += L'\n';
    } else if ((c >= L' ' && c != 0x7F) || c == L'\n' || c == L'\t') {
      clean += c;
    }
  }
  return clean;
}

template <auto End>
struct Ender {
  void operator()(auto* handle) const { End(handle); }
};

// libedit takes characters apart by the locale; terminals speak UTF-8 whatever it says.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

struct LineEditor::State {
  State(Completions c, std::FILE* screen)
      : completions(c),
        on_stdout(screen == stdout),
        history(history_winit()),
        edit(el_init("pteryx", stdin, screen, stderr)) {}

  bool prepare();
  void bind(const wchar_t* key, const wchar_t* function);
  void put(std::string_view text) const;
  void enter();
  void leave();
  bool handle(int signal);
  std::wstring before_cursor() const;

  static State& of(EditLine* edit);
  static wchar_t* prompt_of(EditLine* edit) { return of(edit).prompt.data(); }
  static int read_key(EditLine* edit, wchar_t* key);
  static unsigned char on_interrupt(EditLine* edit, int key);
  static unsigned char on_paste(EditLine* edit, int key);
  static unsigned char on_tab(EditLine* edit, int key);

  Completions completions;
  bool on_stdout;
  bool escapes = understands_escapes();
  std::unique_ptr<HistoryW, Ender<history_wend>> history;
  std::unique_ptr<EditLine, Ender<el_end>> edit;
  TerminalInput input;
  std::wstring prompt;
  bool signalled = false;    // the key that is handed on stands for SIGINT
  bool interrupted = false;  // the line is given up
  int ended_by = 0;          // a signal that ends the program
};

LineEditor::State& LineEditor::State::of(EditLine* edit) {
  void* state = nullptr;
  el_wget(edit, EL_CLIENTDATA, &state);
  return *static_cast<State*>(state);
}

bool LineEditor::State::prepare() {
  if (history == nullptr || edit == nullptr) return false;
  HistEventW event;
  history_w(history.get(), &event, H_SETSIZE, kHistoryLines);
  history_w(history.get(), &event, H_SETUNIQUE, 1);
  EditLine* const e = edit.get();
  el_wset(e, EL_CLIENTDATA, this);
  el_wset(e, EL_PROMPT_ESC, prompt_of, kEscapeMark);
  el_wset(e, EL_EDITOR, L"emacs");
  el_wset(e, EL_HIST, history_w, history.get());
  el_wset(e, EL_GETCFN, read_key);
  el_wset(e, EL_ADDFN, L"pteryx-interrupt", L"Give the line up", on_interrupt);
  el_wset(e, EL_ADDFN, L"pteryx-paste", L"Insert what is pasted", on_paste);
  el_wset(e, EL_ADDFN, L"pteryx-complete", L"Complete the word", on_tab);
  el_source(e, nullptr);  // may choose vi's keys
  bind(L"^C", L"pteryx-interrupt");
  bind(L"\\e[200~", L"pteryx-paste");
  bind(L"^I", L"pteryx-complete");
  return true;
}

void LineEditor::State::bind(const wchar_t* key, const wchar_t* function) {
  el_wset(edit.get(), EL_BIND, key, function, nullptr);
  el_wset(edit.get(), EL_BIND, L"-a", key, function, nullptr);
}

void LineEditor::State::put(std::string_view text) const {
  if (!on_stdout) return write_note(text);
  write(text);
  flush();
}

void LineEditor::State::enter() {
  if (escapes) put(kPasteOn);
  el_wset(edit.get(), EL_PREP_TERM, 1);
}

void LineEditor::State::leave() {
  el_wset(edit.get(), EL_PREP_TERM, 0);
  if (escapes) put(kPasteOff);
}

// Whether the line is done for.
bool LineEditor::State::handle(int signal) {
  switch (signal) {
    case SIGWINCH: el_resize(edit.get()); break;
    case SIGCONT:
      enter();
      el_wset(edit.get(), EL_REFRESH);
      break;
    case SIGTSTP: {
      leave();
      put("\n");
      struct sigaction action = {};
      action.sa_handler = SIG_DFL;
      struct sigaction before = {};
      ::sigaction(SIGTSTP, &action, &before);
      static_cast<void>(std::raise(SIGTSTP));  // back here with SIGCONT
      ::sigaction(SIGTSTP, &before, nullptr);
      break;
    }
    default: ended_by = signal; return true;
  }
  return false;
}

int LineEditor::State::read_key(EditLine* edit, wchar_t* key) {
  State& s = of(edit);
  while (true) {
    const TerminalInput::Event event = s.input.next();
    if (event.kind == TerminalInput::Event::Kind::kEnd) return 0;
    if (event.kind == TerminalInput::Event::Kind::kCharacter) {
      *key = static_cast<wchar_t>(event.character);
      return 1;
    }
    if (event.signal == SIGINT) {
      s.signalled = true;
      *key = kInterruptKey;
      return 1;
    }
    if (s.handle(event.signal)) return 0;
  }
}

// The line stays on the screen, marked, and a newline hands it to next(), which drops it.
unsigned char LineEditor::State::on_interrupt(EditLine* edit, int /*key*/) {
  State& s = of(edit);
  s.signalled = false;
  s.interrupted = true;
  el_cursor(edit, std::numeric_limits<int>::max() / 2);
  el_winsertstr(edit, kInterruptMark);
  el_wpush(edit, L"\n");
  return CC_REFRESH;
}

unsigned char LineEditor::State::on_paste(EditLine* edit, int key) {
  const State& s = of(edit);
  std::wstring text;
  while (!text.ends_with(kPasteEnd)) {
    wchar_t c = 0;
    if (el_wgetc(edit, &c) != 1) return CC_EOF;
    if (s.signalled) return on_interrupt(edit, key);
    text += c;
  }
  text.resize(text.size() - kPasteEnd.size());
  text = clean_paste(text);
  return text.empty() || el_winsertstr(edit, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

std::wstring LineEditor::State::before_cursor() const {
  const LineInfoW* const line = el_wline(edit.get());
  return {line->buffer, line->cursor};
}

// As far as all completions agree; where that is no further, all are shown.
unsigned char LineEditor::State::on_tab(EditLine* edit, int /*key*/) {
  const State& s = of(edit);
  const std::string typed = narrow(s.before_cursor());
  if (!typed.starts_with('/')) return el_winsertstr(edit, L"\t") == 0 ? CC_REFRESH : CC_ERROR;
  const std::vector<std::string> all = s.completions(typed);
  if (all.empty()) return CC_ERROR;
  std::string common = all.front();
  for (const std::string& one : all) {
    const auto differ = std::mismatch(common.begin(), common.end(), one.begin(), one.end());
    common.erase(differ.first, common.end());
  }
  common.resize(complete_prefix(common));
  if (common.size() > typed.size()) {
    const std::wstring rest = widen(std::string_view(common).substr(typed.size()));
    return el_winsertstr(edit, rest.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }
  if (all.size() == 1) return CC_NORM;
  const size_t word = typed.rfind(' ') + 1;  // 0 where there is none
  std::string list = "\n";
  for (const std::string& one : all) list += one.substr(word) + (one.ends_with(' ') ? " " : "  ");
  s.put(list + "\n");
  return CC_REDISPLAY;
}

LineEditor::LineEditor(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineEditor::~LineEditor() = default;

std::unique_ptr<LineEditor> LineEditor::open(Completions completions) {
  use_utf8();
  auto state = std::make_unique<State>(completions, stdout_is_terminal() ? stdout : stderr);
  if (!state->prepare()) return nullptr;
  return std::unique_ptr<LineEditor>(new LineEditor(std::move(state)));
}

Line LineEditor::next(std::string_view prompt) {
  State& s = *state_;
  s.prompt = widen(prompt);
  if (s.on_stdout && stdout_has_colour()) {  // escapes go with the character behind them
    s.prompt.insert(s.prompt.size() - 1, L"\001\033[0m\001");
    s.prompt.insert(0, L"\001\033[1m\001");
  }
  s.signalled = s.interrupted = false;
  Line line;
  {
    const SignalEvents events;
    s.enter();
    int count = 0;
    const wchar_t* const typed = el_wgets(s.edit.get(), &count);
    s.leave();
    if (typed == nullptr || count <= 0) {
      line.kind = Line::Kind::kEnd;
    } else {
      line.text = narrow({typed, static_cast<size_t>(count)});
    }
  }
  if (s.ended_by != 0) {
    s.put("\n");
    static_cast<void>(std::raise(s.ended_by));
  }
  if (line.kind == Line::Kind::kEnd) s.put("\n");
  while (line.text.ends_with('\n')) line.text.pop_back();
  if (s.interrupted) {
    line.kind = Line::Kind::kInterrupt;
    line.text.resize(line.text.size() - std::min(line.text.size(), std::size(kInterruptMark) - 1));
  }
  HistEventW event;
  if (line.kind == Line::Kind::kText && !line.text.empty())
    history_w(s.history.get(), &event, H_ENTER, widen(line.text).c_str());
  return line;
}

}  // namespace pteryx::cli

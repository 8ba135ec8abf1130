// Keys from the terminal, and the signals that come between them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>

namespace pteryx::cli {

// While there is one of these, SIGINT and the others of kSignals are events instead of an end.
// Those that nobody took are raised again in the end: a Ctrl-C typed just behind a line stops its
// answer.
class SignalEvents {
 public:
  SignalEvents();
  ~SignalEvents();
  SignalEvents(const SignalEvents&) = delete;
  SignalEvents& operator=(const SignalEvents&) = delete;

 private:
  static constexpr std::array<int, 7> kSignals = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                                  SIGTSTP, SIGCONT, SIGWINCH};
  std::array<struct sigaction, kSignals.size()> before_ = {};
};

class TerminalInput {
 public:
  TerminalInput();
  ~TerminalInput();
  TerminalInput(const TerminalInput&) = delete;
  TerminalInput& operator=(const TerminalInput&) = delete;

  struct Event {
    enum class Kind : uint8_t { kCharacter, kSignal, kEnd };
    Kind kind = Kind::kEnd;
    char32_t character = 0;  // U+FFFD for bytes that are no UTF-8
    int signal = 0;
  };
  // Waits; signals are heard where there are SignalEvents.
  Event next();

 private:
  enum class Wait : uint8_t { kBytes, kSignal, kEnd };
  Wait wait();
  Event character();

  std::string bytes_;  // read and not yet handed on, from at_ on
  size_t at_ = 0;
};

}  // namespace pteryx::cli

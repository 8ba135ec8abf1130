// Signals. SPDX-License-Identifier: BSD-3-Clause
#include "interrupt.h"

#include <string_view>

#include <unistd.h>

#include "output.h"

namespace pteryx::cli {
namespace {

volatile std::sig_atomic_t first = 0;

void remember(int signal) {
  if (first != 0) {
    std::signal(signal, SIG_DFL);
    static_cast<void>(std::raise(signal));
  }
  first = signal;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  first = 0;
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &interrupt_before_);
  ::sigaction(SIGTERM, &action, &terminate_before_);
  ::sigaction(SIGHUP, &action, &hangup_before_);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
  ::sigaction(SIGHUP, &hangup_before_, nullptr);
}

int InterruptGuard::signal() { return first; }

Status InterruptGuard::check() {
  return interrupted() ? Status(Code::kCancelled, "interrupted") : Status();
}

void explain_truncated_files() {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    constexpr std::string_view kText =
        "pteryx: a file became shorter while it was read, or its disk failed\n";
    static_cast<void>(::write(STDERR_FILENO, kText.data(), kText.size()) == 0);
    ::_exit(kBadFile);
  };
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace pteryx::cli

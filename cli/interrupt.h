// Ctrl-C as a wish that commands look at, instead of an end. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <csignal>

#include "pteryx/base/status.h"

namespace pteryx::cli {

// While there is one of these, the first Ctrl-C only sets a flag, and so do SIGTERM and SIGHUP; a
// second one ends the program.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether one came since the youngest guard was made, and which; 0: none.
  static bool interrupted() { return signal() != 0; }
  static int signal();
  // kCancelled if one came.
  static Status check();

 private:
  struct sigaction interrupt_before_ = {};
  struct sigaction terminate_before_ = {};
  struct sigaction hangup_before_ = {};
};

// A mapped file that somebody shortens raises SIGBUS where it is read: a sentence and an exit code
// instead of a crash.
void explain_truncated_files();

}  // namespace pteryx::cli

// Threads by the standard library, which ends the program where there is none left.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/thread.h"

#include <thread>
#include <utility>

namespace pteryx {

struct Thread::Running {
  std::thread thread;
};

void Thread::Join::operator()(Running* running) const {
  running->thread.join();
  delete running;
}

std::optional<Thread> Thread::start(std::function<void()> body) {
  return Thread(new Running{std::thread(std::move(body))});
}

}  // namespace pteryx

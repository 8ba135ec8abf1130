// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/thread.h"

#include <utility>

#include <pthread.h>

namespace pteryx {

struct Thread::Running {
  pthread_t id = {};
  std::function<void()> body;
};

void Thread::Join::operator()(Running* running) const {
  pthread_join(running->id, nullptr);
  delete running;
}

std::optional<Thread> Thread::start(std::function<void()> body) {
  auto running = std::make_unique<Running>();
  running->body = std::move(body);
  const auto call = [](void* told) -> void* {
    static_cast<Running*>(told)->body();
    return nullptr;
  };
  if (pthread_create(&running->id, nullptr, call, running.get()) != 0) return std::nullopt;
  return Thread(running.release());
}

}  // namespace pteryx

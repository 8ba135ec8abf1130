// A thread that the system may not have: std::thread ends a program without exceptions then.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>

namespace pteryx {

// Joined when it is destroyed.
class Thread {
 public:
  // Calls body() on a thread of its own; none where the system has no more.
  static std::optional<Thread> start(std::function<void()> body);

 private:
  struct Running;
  struct Join {
    void operator()(Running* running) const;
  };
  explicit Thread(Running* running) : running_(running) {}
  std::unique_ptr<Running, Join> running_;
};

}  // namespace pteryx

// What a command is busy with, for somebody who waits at a terminal.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "pteryx/base/thread.h"

namespace pteryx::cli {

// One line on stderr, there after half a second and gone at the end: what, how much of it, and how
// long it will still take. It goes on counting while the program waits for a driver. Nothing where
// stderr is no terminal, or one that cannot erase.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Another thing, whose time starts now; nothing happens where it is the same.
  void begin(std::string_view what);
  // total 0: not known.
  void set(uint64_t done, uint64_t total);
  // Something that goes on by itself meanwhile: where `look` finds that there is some left, the
  // line tells of it instead. Called by another thread.
  struct Share {
    uint64_t done = 0;
    uint64_t total = 0;
  };
  void watch(std::string what, std::function<Share()> look);
  // Takes the line away for good.
  void end();

 private:
  using Clock = std::chrono::steady_clock;
  void show();
  void draw(const std::string& what, Share share, Clock::time_point start);
  void clear();

  int terminal_ = -1;  // stderr as it was, whatever is put in its place for a while
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  bool visible_ = false;
  std::string what_;
  Share share_;
  Clock::time_point born_ = Clock::now();
  Clock::time_point start_ = born_;
  std::string watched_;
  std::function<Share()> look_;
  std::optional<Clock::time_point> watched_start_;  // while there is something left
  std::optional<Thread> thread_;
};

// "12 s", "3 min 20 s"
std::string duration_text(double seconds);

}  // namespace pteryx::cli

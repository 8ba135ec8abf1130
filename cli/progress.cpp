// The progress line. SPDX-License-Identifier: BSD-3-Clause
#include "progress.h"

#include <cmath>

#include <unistd.h>

#include <fmt/format.h>

#include "output.h"

namespace pteryx::cli {
namespace {

constexpr auto kSilence = std::chrono::milliseconds(500);
constexpr auto kPeriod = std::chrono::milliseconds(200);
constexpr double kEstimateAfter = 1.0;  // seconds; earlier guesses jump about

void put(int terminal, std::string_view text) {
  static_cast<void>(::write(terminal, text.data(), text.size()) == 0);
}

}  // namespace

std::string duration_text(double seconds) {
  const int64_t whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (!stderr_is_terminal() || !understands_escapes()) return;
  terminal_ = ::dup(STDERR_FILENO);
  if (terminal_ < 0) return;
  // Without a thread there is no line.
  thread_ = Thread::start([this] {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kPeriod, [this] { return ended_; })) {
      if (Clock::now() - born_ >= kSilence) show();
    }
  });
}

Progress::~Progress() {
  end();
  if (terminal_ >= 0) ::close(terminal_);
}

void Progress::begin(std::string_view what) {
  const std::lock_guard lock(mutex_);
  if (what_ == what) return;
  what_ = what;
  share_ = {};
  start_ = Clock::now();
}

void Progress::set(uint64_t done, uint64_t total) {
  const std::lock_guard lock(mutex_);
  share_ = {done, total};
}

void Progress::watch(std::string what, std::function<Share()> look) {
  const std::lock_guard lock(mutex_);
  watched_ = std::move(what);
  look_ = std::move(look);
}

void Progress::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.reset();
  clear();
}

void Progress::show() {
  const Share watched = look_ ? look_() : Share{};
  if (watched.done < watched.total) {
    if (!watched_start_) watched_start_ = Clock::now();
    draw(watched_, watched, *watched_start_);
    return;
  }
  watched_start_.reset();
  draw(what_, share_, start_);
}

void Progress::draw(const std::string& what, Share share, Clock::time_point start) {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  std::string line = what;
  if (share.total > 0) {
    const double part = static_cast<double>(share.done) / static_cast<double>(share.total);
    line += fmt::format(" {:.0f} %", part * 100);
    if (part > 0 && elapsed > kEstimateAfter)
      line += fmt::format(", {} left", duration_text(elapsed / part * (1 - part)));
  }
  if (share.total == 0 || share.done == 0) line += fmt::format(" ({})", duration_text(elapsed));
  put(terminal_, fmt::format("\r{}\033[K", printable(line)));
  visible_ = true;
}

void Progress::clear() {
  if (visible_) put(terminal_, "\r\033[K");
  visible_ = false;
}

}  // namespace pteryx::cli

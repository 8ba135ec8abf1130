// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "pteryx/base/thread.h"
#include "pteryx/cpu/processors.h"

namespace pteryx::convert {
namespace {

constexpr uint32_t kMostThreads = 64;
constexpr uint64_t kBytesPerThread = uint64_t{4} << 20;
constexpr std::chrono::milliseconds kBetweenQuestions(20);

Status cancelled() { return {Code::kCancelled, "interrupted"}; }

Status run_here(size_t count, const Work& work, const std::function<bool()>& proceed) {
  bool stopped = false;
  const auto ask = [&] { return stopped = stopped || (proceed != nullptr && !proceed()); };
  for (size_t i = 0; i < count; ++i) {
    if (ask()) return cancelled();
    Status s = work(i, ask);
    if (stopped) return cancelled();
    if (!s.ok()) return s;
  }
  return {};
}

}  // namespace

uint32_t threads_for(uint32_t wanted, uint64_t bytes) {
  if (wanted != 0) return wanted;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(bytes / kBytesPerThread, 1, cpu::usable_cores()));
}

Status run_parallel(size_t count, uint32_t threads, const Work& work,
                    const std::function<bool()>& proceed) {
  const size_t workers = std::min<size_t>(std::min(threads, kMostThreads), count);
  if (workers <= 1) return run_here(count, work, proceed);
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::mutex mutex;
  std::condition_variable ended;
  size_t running = workers;
  size_t first_failed = count;
  Status failure;

  const Stopped ask = [&] { return stopped.load(); };
  const auto run = [&] {
    while (!stopped) {
      const size_t i = next++;
      if (i >= count) break;
      Status s = work(i, ask);
      if (s.ok()) continue;
      const std::lock_guard lock(mutex);
      // What only ended because of another's error is none of its own.
      if (i < first_failed && (!stopped || s.code() != Code::kCancelled)) {
        first_failed = i;
        failure = std::move(s);
      }
      stopped = true;
    }
    const std::lock_guard lock(mutex);
    --running;
    ended.notify_one();
  };
  std::vector<Thread> pool;
  pool.reserve(workers);
  for (size_t i = 0; i < workers; ++i) {
    std::optional<Thread> thread = Thread::start(run);
    if (!thread) break;
    pool.push_back(std::move(*thread));
  }
  if (pool.empty()) return run_here(count, work, proceed);
  bool no = false;
  {
    std::unique_lock lock(mutex);
    running -= workers - pool.size();  // those that the system does not have
    while (running > 0) {
      ended.wait_for(lock, kBetweenQuestions);
      if (no || running == 0 || proceed == nullptr) continue;
      lock.unlock();
      no = !proceed();
      if (no) stopped = true;
      lock.lock();
    }
  }
  pool.clear();
  return no ? cancelled() : std::move(failure);
}

}  // namespace pteryx::convert

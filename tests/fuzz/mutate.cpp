// mutate [--count N] [--seed S] [--first K] [--jobs J] [--save FILE] FILE...
// Makes seeded mutations of files and loads each. A load may refuse, but it may not crash, take
// over two seconds, or take more memory than heap_limit() says. Case K of a seed is the same
// whatever the other options are. Folders stand for their programs.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <malloc.h>

#include "check.h"
#include "fields.h"
#include "input.h"
#include "mutator.h"

namespace {

using Clock = std::chrono::steady_clock;
using pteryx::Status;
using pteryx::fuzz::Fields;
using pteryx::fuzz::Mutator;

constexpr std::chrono::milliseconds kTimeLimit{2000};

// Records take up to 12 times the FlatBuffer they come from (program::Budget), a little more in
// heap blocks, and the records of one delegate live beside those of the program. Graph and plan
// have stayed within that; tensors take nothing, for a plan only says how large they would be.
constexpr uint64_t heap_limit(uint64_t file_bytes) { return 24 * file_bytes + (uint64_t{1} << 20); }

// The case at hand, for reports from anywhere.
struct Case {
  const char* file = "";
  uint64_t seed = 0;
  std::atomic<uint64_t> number = 0;
  std::atomic<int64_t> started = 0;  // Clock ticks; 0 while nothing is being checked
};
Case current;

void report(const char* what) {
  std::fprintf(stderr, "mutate: %s: %s: replay with --seed %llu --first %llu --count 1\n",
               current.file, what, static_cast<unsigned long long>(current.seed),
               static_cast<unsigned long long>(current.number.load()));
}

[[noreturn]] void give_up(const char* what) {
  report(what);
  std::_Exit(1);
}

// Heap use, by replacing the operators.
std::atomic<uint64_t> heap_now = 0;
std::atomic<uint64_t> heap_peak = 0;
std::atomic<uint64_t> heap_stop = std::numeric_limits<uint64_t>::max();

void* counted(void* block) {
  if (block == nullptr) give_up("out of memory");
  const uint64_t now = heap_now += malloc_usable_size(block);
  if (now > heap_peak) heap_peak = now;
  if (now > heap_stop) {
    heap_stop = std::numeric_limits<uint64_t>::max();
    give_up("takes too much memory");
  }
  return block;
}
void uncounted(void* block) {
  if (block != nullptr) heap_now -= malloc_usable_size(block);
  std::free(block);
}

}  // namespace

void* operator new(size_t size) { return counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(size_t size, std::align_val_t alignment) {
  const auto a = static_cast<size_t>(alignment);
  return counted(std::aligned_alloc(a, std::max(a, (size + a - 1) / a * a)));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return counted(std::malloc(size == 0 ? 1 : size));
}
void operator delete(void* block, const std::nothrow_t&) noexcept { uncounted(block); }
void operator delete(void* block) noexcept { uncounted(block); }
void operator delete(void* block, size_t) noexcept { uncounted(block); }
void operator delete(void* block, std::align_val_t) noexcept { uncounted(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { uncounted(block); }

// Sanitizers call back before they end the process.
extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));

namespace {

struct Options {
  uint64_t count = 10000;
  uint64_t seed = 1;
  uint64_t first = 0;
  uint64_t jobs = 1;
  std::string save;  // where the case being checked is kept
  std::vector<std::string> paths;
};

struct Counts {
  std::atomic<uint64_t> loaded = 0;
  std::atomic<uint64_t> refused = 0;
  std::atomic<uint64_t> failed = 0;
  std::atomic<uint64_t> slowest_us = 0;
};

[[noreturn]] void usage(const std::string& why) {
  std::fprintf(stderr,
               "mutate: %s\nusage: mutate [--count N] [--seed S] [--first K] [--jobs J] [--save "
               "FILE] FILE...\n",
               why.c_str());
  std::exit(2);
}

Options parse_options(int argc, char** argv) {
  Options o;
  const std::array<std::pair<std::string_view, uint64_t*>, 4> numbers = {
      {{"--count", &o.count}, {"--seed", &o.seed}, {"--first", &o.first}, {"--jobs", &o.jobs}}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    const auto* const number =
        std::find_if(numbers.begin(), numbers.end(), [&](const auto& n) { return n.first == arg; });
    if (number == numbers.end() && arg != "--save") {
      if (arg.starts_with("--")) usage("unknown option " + std::string(arg));
      o.paths.emplace_back(arg);
      continue;
    }
    if (++i == argc) usage(std::string(arg) + " wants a value");
    if (arg == "--save") {
      o.save = argv[i];
      continue;
    }
    char* end = nullptr;
    *number->second = std::strtoull(argv[i], &end, 10);
    if (end == argv[i] || *end != '\0') usage(std::string(arg) + " wants a number, got " + argv[i]);
  }
  if (o.paths.empty()) usage("no files");
  if (o.jobs == 0) o.jobs = 1;
  return o;
}

// Folders become the programs and data files below them, in a fixed order.
std::vector<std::string> expand(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      const auto extension = entry.path().extension();
      if (extension == ".pte" || extension == ".ptd") found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) usage("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void watch() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int64_t started = current.started;
    if (started == 0) continue;
    if (Clock::now() - Clock::time_point(Clock::duration(started)) > kTimeLimit)
      give_up("takes over two seconds");
  }
}

void run_case(const std::string& data, Counts& counts) {
  const pteryx::fuzz::Input input(data.data(), data.size());
  const uint64_t before = heap_now;
  heap_peak = before;
  heap_stop = before + heap_limit(data.size());
  const auto start = Clock::now();
  current.started = start.time_since_epoch().count();
  const Status status = pteryx::fuzz::check(input.bytes());
  current.started = 0;
  heap_stop = std::numeric_limits<uint64_t>::max();
  const auto us = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
  if (us > counts.slowest_us) counts.slowest_us = us;
  if (status.ok()) {
    ++counts.loaded;
  } else if (pteryx::fuzz::is_refusal(status)) {
    ++counts.refused;
  } else {
    ++counts.failed;
    report(("refused as '" + std::string(name(status.code())) + "' with message '" +
            std::string(status.message()) + "'")
               .c_str());
  }
}

// Cases job, job + jobs, ...
void run_job(const Options& o, uint64_t job, const std::vector<std::string>& paths,
             const std::vector<std::string>& files, const std::vector<Fields>& fields,
             Counts& counts) {
  if (__sanitizer_set_death_callback != nullptr)
    __sanitizer_set_death_callback([] { report("ends the process"); });
  std::thread(watch).detach();
  current.seed = o.seed;
  for (uint64_t k = o.first + job; k < o.first + o.count; k += o.jobs) {
    const size_t which = k % files.size();
    current.file = paths[which].c_str();
    current.number = k;
    const std::string data = Mutator(files, fields, o.seed, k).mutate(which);
    if (!o.save.empty()) std::ofstream(o.save, std::ios::binary) << data;
    run_case(data, counts);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = parse_options(argc, argv);
  const std::vector<std::string> paths = expand(o.paths);
  if (paths.empty()) usage("no files");
  std::vector<std::string> files;
  std::vector<Fields> fields;
  for (const std::string& path : paths) {
    files.push_back(read_file(path));
    fields.push_back(pteryx::fuzz::find_fields(files.back()));
  }

  void* const shared =
      ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) usage("no shared memory");
  Counts& counts = *new (shared) Counts;
  uint64_t crashed = 0;
  // A process for each job, so that a crash does not take the summary along.
  std::vector<pid_t> children;
  for (uint64_t job = 0; job < o.jobs; ++job) {
    const pid_t child = ::fork();
    if (child == 0) {
      run_job(o, job, paths, files, fields, counts);
      std::_Exit(0);
    }
    if (child < 0) usage("cannot fork");
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int state = 0;
    ::waitpid(child, &state, 0);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) ++crashed;
  }
  const uint64_t failed = counts.failed + crashed;
  std::printf(
      "seed %llu, %llu mutations: %llu loaded, %llu refused, %llu failed (slowest %.1f ms)\n",
      static_cast<unsigned long long>(o.seed),
      static_cast<unsigned long long>(counts.loaded + counts.refused + failed),
      static_cast<unsigned long long>(counts.loaded.load()),
      static_cast<unsigned long long>(counts.refused.load()),
      static_cast<unsigned long long>(failed),
      static_cast<double>(counts.slowest_us.load()) / 1000);
  return failed == 0 ? 0 : 1;
}

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/testing/render_alone.h"

#include <array>
#include <ctime>
#include <iterator>
#include <sstream>
#include <string_view>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "pteryx/llm/chat/template.h"

namespace pteryx::llm::testing {
namespace {

constexpr size_t kMostMessage = 4000;  // a pipe takes so much at once

long peak_kib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

double processor_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

Outcome render_alone(const std::string& source, uint64_t most_work) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    if (!kSanitized) {
      const rlimit space = {rlim_t{2} << 30, rlim_t{2} << 30};
      setrlimit(RLIMIT_AS, &space);
    }
    const rlimit time = {20, 20};
    setrlimit(RLIMIT_CPU, &time);
    const long before = peak_kib();
    const double start = processor_seconds();
    const auto parsed = chat::Template::parse(source);
    const auto text =
        parsed.ok() ? parsed->render({}, {.most_work = most_work}) : Result<std::string>(Status());
    const double took = processor_seconds() - start;
    const bool accepted = parsed.ok() && text.ok();
    const std::string_view message = accepted      ? std::string_view()
                                     : parsed.ok() ? text.status().message()
                                                   : parsed.status().message();
    const std::string answer = fmt::format("{} {} {} {}", accepted ? 1 : 0, took,
                                           peak_kib() - before, message.substr(0, kMostMessage));
    const ssize_t written = write(ends[1], answer.data(), answer.size());
    _exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string answer;
  std::array<char, 4096> buffer{};
  for (ssize_t n = 0; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    answer.append(buffer.data(), static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  Outcome o = {.ended = WIFEXITED(status)};
  std::istringstream in(answer);
  in >> o.accepted >> o.seconds >> o.peak_kib >> std::ws;
  o.message.assign(std::istreambuf_iterator<char>(in), {});
  return o;
}

}  // namespace pteryx::llm::testing

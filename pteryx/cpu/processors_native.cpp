// Cores and quotas, from where Linux tells them. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "pteryx/cpu/processors.h"

namespace pteryx::cpu {
namespace {

// A small file of the system; "" where there is none.
std::string text_of(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return "";
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

// Takes what stands before the separator, or all of it, off the text.
std::string_view take(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// "200000" microseconds; none for "max", "-1" and whatever else is no limit.
std::optional<double> microseconds(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \n") + 1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return static_cast<double>(value);
}

// The smallest quota of a group and those that it is in: "/a/b", "/a", "".
template <typename Quota>
void limit(const std::string& folder, std::string_view group, std::optional<double>& least,
           Quota&& of) {
  std::string path(group == "/" ? "" : group);
  while (true) {
    const std::optional<double> quota = of(folder + path);
    if (quota) least = std::min(least.value_or(*quota), *quota);
    if (path.empty()) return;
    path.resize(std::min(path.rfind('/'), path.size() - 1));
  }
}

// Version 2: "max 100000" or "150000 100000".
std::optional<double> quota_v2(const std::string& folder) {
  const std::string line = text_of(folder + "/cpu.max");
  std::string_view rest = line;
  const auto time = microseconds(take(rest, ' '));
  const auto period = microseconds(rest);
  return time && period ? std::optional(*time / *period) : std::nullopt;
}

std::optional<double> quota_v1(const std::string& folder) {
  const auto time = microseconds(text_of(folder + "/cpu.cfs_quota_us"));
  const auto period = microseconds(text_of(folder + "/cpu.cfs_period_us"));
  return time && period ? std::optional(*time / *period) : std::nullopt;
}

// Lines are "0::/group" for version 2 and "4:cpu,cpuacct:/group" for version 1. In a container the
// group may have another name there than in its own mount, whose root is then the group.
std::optional<double> cgroup_quota(const std::string& root) {
  std::optional<double> least;
  const std::string groups = text_of(root + "/proc/self/cgroup");
  for (std::string_view rest = groups; !rest.empty();) {
    std::string_view group = take(rest, '\n');
    take(group, ':');
    const std::string controllers(take(group, ':'));
    if (controllers.empty()) {
      limit(root + "/sys/fs/cgroup", group, least, quota_v2);
      limit(root + "/sys/fs/cgroup/unified", group, least, quota_v2);
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      limit(root + "/sys/fs/cgroup/cpu", group, least, quota_v1);
      if (controllers != "cpu") {
        limit(fmt::format("{}/sys/fs/cgroup/{}", root, controllers), group, least, quota_v1);
      }
    }
  }
  return least;
}

}  // namespace

size_t Processors::usable() const {
  size_t most = std::max<size_t>(cores, 1);
  // A part of a processor keeps a thread running for that part of the time.
  if (quota && *quota < static_cast<double>(most)) most = static_cast<size_t>(std::ceil(*quota));
  return std::max<size_t>(most, 1);
}

std::string Processors::reason() const {
  const auto counted = [](auto n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  if (usable() < cores) {
    return fmt::format("the control group (cgroup) allows the time of {}, of {}",
                       counted(std::round(*quota * 100) / 100, "processor"),
                       counted(cores, "core"));
  }
  std::string text =
      cores == 1 ? "there is 1 core" : fmt::format("one for each of {} cores", cores);
  if (allowed > cores) text += fmt::format(" ({})", counted(allowed, "hardware thread"));
  if (allowed < online) {
    text +=
        fmt::format("; this process may run on {} of {}", allowed, counted(online, "processor"));
  }
  return text;
}

Processors read_processors(const std::string& root, std::span<const size_t> allowed) {
  std::set<std::string> cores;
  for (const size_t cpu : allowed) {
    const std::string number = std::to_string(cpu);
    const std::string siblings = text_of(
        fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", root, cpu));
    cores.insert(siblings.empty() ? number : siblings);
  }
  return {.online = allowed.size(),
          .allowed = allowed.size(),
          .cores = cores.size(),
          .quota = cgroup_quota(root)};
}

size_t usable_cores() { return processors().usable(); }

}  // namespace pteryx::cpu

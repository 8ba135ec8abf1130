// How many threads pay: what the system has of processors, and what this process may use of them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace pteryx::cpu {

struct Processors {
  size_t online = 1;            // of the machine
  size_t allowed = 1;           // that the affinity of this process leaves it
  size_t cores = 1;             // that those are on: hyper-threads of one core count once
  std::optional<double> quota;  // processors' worth of time that a control group (cgroup) allows

  // Threads that pay: one for each core, no more than the quota keeps running.
  size_t usable() const;
  // Why so many: "one for each of the 4 cores of 8 processors".
  std::string reason() const;
};
Processors processors();

// Cores and quota of a Linux system whose files are under `root` ("" is this one's), for a process
// that may run on these processors.
Processors read_processors(const std::string& root, std::span<const size_t> allowed);

// Cores that this process may use: processors().usable().
size_t usable_cores();

}  // namespace pteryx::cpu

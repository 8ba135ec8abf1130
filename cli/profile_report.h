// What a profile found, summed up: by kernel, by node, by phase of the host.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "pteryx/gpu/caps.h"
#include "pteryx/gpu/native/peaks.h"
#include "pteryx/profile.h"

namespace pteryx::cli {

// A part of a profile that was measured by itself.
struct ProfiledPart {
  std::string name;  // "prompt 128", "text 16", "forward"
  std::string unit;  // what times are given for one of: "prompt", "token", "call"
  double units = 1;
  double wall_us = 0;
  size_t gpu_begin = 0;  // of Profile::gpu()
  size_t gpu_end = 0;
  size_t host_begin = 0;  // of Profile::host()
  size_t host_end = 0;
};

struct ProfileReport {
  gpu::Caps device;
  std::optional<gpu::Peaks> peaks;  // none: not measured, since nothing is compared with them
  std::vector<ProfiledPart> parts;
};

void print_profile(const ProfileReport& report, const Profile& profile);
nlohmann::json profile_json(const ProfileReport& report, const Profile& profile);
// In the format of Chrome's traces, which Perfetto opens: host and GPU on one time line.
nlohmann::json trace_json(const ProfileReport& report, const Profile& profile);

}  // namespace pteryx::cli

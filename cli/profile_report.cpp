// SPDX-License-Identifier: BSD-3-Clause
#include "profile_report.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "device.h"
#include "output.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;
using Phase = Profile::Phase;

constexpr std::array kPhases = {Phase::kShapes, Phase::kWrites, Phase::kEncode, Phase::kSubmit,
                                Phase::kHost,   Phase::kWait,   Phase::kRead};

// Dispatches of one kernel, or of one node, in all units.
struct Sum {
  std::string kernel;
  std::string method;
  std::string op;
  uint32_t node = 0;
  size_t count = 0;
  double us = 0;
  double bytes = 0;
  double flops = 0;

  void add(const Profile::GpuSpan& g) {
    ++count;
    us += g.end_us - g.begin_us;
    bytes += g.bytes;
    flops += g.flops;
  }
  double bytes_per_s() const { return us > 0 ? bytes / us * 1e6 : 0; }
  double flops_per_s() const { return us > 0 ? flops / us * 1e6 : 0; }
};

std::span<const Profile::GpuSpan> gpu_of(const ProfiledPart& part, const Profile& profile) {
  return profile.gpu().subspan(part.gpu_begin, part.gpu_end - part.gpu_begin);
}

std::vector<Sum> sorted(auto sums) {
  std::vector<Sum> list;
  list.reserve(sums.size());
  for (auto& [key, sum] : sums) list.push_back(std::move(sum));
  std::ranges::stable_sort(list, std::greater<>(), &Sum::us);
  return list;
}

std::vector<Sum> by_kernel(std::span<const Profile::GpuSpan> spans) {
  std::map<std::string_view, Sum> sums;
  for (const Profile::GpuSpan& g : spans) {
    Sum& s = sums[g.kernel];
    s.kernel = g.kernel;
    s.add(g);
  }
  return sorted(std::move(sums));
}

std::vector<Sum> by_node(std::span<const Profile::GpuSpan> spans) {
  std::map<std::tuple<std::string_view, uint32_t>, Sum> sums;
  for (const Profile::GpuSpan& g : spans) {
    if (g.op.empty()) continue;
    Sum& s = sums[{g.method, g.node}];
    s.method = g.method;
    s.op = g.op;
    s.node = g.node;
    if (s.kernel.find(g.kernel) == std::string::npos)
      s.kernel += fmt::format("{}{}", s.kernel.empty() ? "" : " ", g.kernel);
    s.add(g);
  }
  return sorted(std::move(sums));
}

double gpu_us(std::span<const Profile::GpuSpan> spans) {
  double us = 0;
  for (const Profile::GpuSpan& g : spans) us += g.end_us - g.begin_us;
  return us;
}

double phase_us(const ProfiledPart& part, const Profile& profile, Phase phase) {
  double us = 0;
  for (size_t i = part.host_begin; i < part.host_end; ++i) {
    const Profile::HostSpan& h = profile.host()[i];
    if (h.phase == phase) us += h.end_us - h.begin_us;
  }
  return us;
}

std::string rate(double per_s, double unit, double peak) {
  if (per_s <= 0) return "";
  const std::string number = fmt::format("{:.3g}", per_s / unit);
  return peak > 0 ? fmt::format("{} ({:.0f} %)", number, per_s / peak * 100) : number;
}

void print_sums(const std::vector<Sum>& sums, const ProfiledPart& part, double all_us,
                const gpu::Peaks& peaks, bool nodes) {
  const size_t most = nodes ? 15 : 30;
  print("  {:>7} {:>10} {:>7} {:>15} {:>15}  {}\n", "count", "us", "share", "GB/s", "TFLOP/s",
        nodes ? "node" : "kernel");
  for (size_t i = 0; i < std::min(sums.size(), most); ++i) {
    const Sum& s = sums[i];
    print("  {:>7} {:>10.1f} {:>5.1f} % {:>15} {:>15}  {}\n",
          fmt::format("{:.4g}", static_cast<double>(s.count) / part.units), s.us / part.units,
          all_us > 0 ? s.us / all_us * 100 : 0, rate(s.bytes_per_s(), 1e9, peaks.bytes_per_s),
          rate(s.flops_per_s(), 1e12, peaks.flops_per_s),
          nodes ? fmt::format("{} {}, node {}", printable(s.method), s.op, s.node) : s.kernel);
  }
  if (sums.size() > most) print("  and {} more; --json has all\n", sums.size() - most);
}

json sum_json(const Sum& s, const ProfiledPart& part, double all_us) {
  return {{"count", static_cast<double>(s.count) / part.units},
          {"us", s.us / part.units},
          {"share", all_us > 0 ? s.us / all_us : 0},
          {"bytes", s.bytes / part.units},
          {"flops", s.flops / part.units},
          {"bytes_per_s", s.bytes_per_s()},
          {"flops_per_s", s.flops_per_s()}};
}

json part_json(const ProfiledPart& part, const Profile& profile) {
  const auto spans = gpu_of(part, profile);
  const double all = gpu_us(spans);
  json j = {{"name", part.name},
            {"unit", part.unit},
            {"units", part.units},
            {"wall_us", part.wall_us / part.units},
            {"gpu_us", profile.has_timestamps() ? json(all / part.units) : json()},
            {"host_us", json::object()},
            {"kernels", json::array()},
            {"nodes", json::array()}};
  for (const Phase phase : kPhases)
    j["host_us"][std::string(name(phase))] = phase_us(part, profile, phase) / part.units;
  for (const Sum& s : by_kernel(spans)) {
    j["kernels"].push_back(sum_json(s, part, all));
    j["kernels"].back()["kernel"] = s.kernel;
  }
  for (const Sum& s : by_node(spans)) {
    json n = sum_json(s, part, all);
    n["method"] = s.method;
    n["op"] = s.op;
    n["node"] = s.node;
    n["kernels"] = s.kernel;
    j["nodes"].push_back(std::move(n));
  }
  return j;
}

}  // namespace

void print_profile(const ProfileReport& report, const Profile& profile) {
  print("{}", device_header(report.device));
  const gpu::Peaks peaks = report.peaks.value_or(gpu::Peaks());
  if (report.peaks) {
    print(": {:.1f} GB/s copied, {:.2f} TFLOP/s of f32; percentages are of these",
          peaks.bytes_per_s / 1e9, peaks.flops_per_s / 1e12);
  }
  print("\n");
  if (!profile.has_timestamps() && !report.device.cpu)
    print("It has no timestamps, so that only the host's times are known.\n");
  for (const ProfiledPart& part : report.parts) {
    const auto spans = gpu_of(part, profile);
    const double all = gpu_us(spans);
    print("\n{}: per {} {:.1f} us", printable(part.name), part.unit, part.wall_us / part.units);
    if (profile.has_timestamps()) print(", GPU {:.1f} us", all / part.units);
    std::string host;
    for (const Phase phase : kPhases) {
      const double us = phase_us(part, profile, phase) / part.units;
      if (us > 0) host += fmt::format("{} {} {:.1f}", host.empty() ? "" : ",", name(phase), us);
    }
    print("\n  host us:{}\n", host);
    if (spans.empty()) continue;
    print_sums(by_kernel(spans), part, all, peaks, false);
    print_sums(by_node(spans), part, all, peaks, true);
  }
}

json profile_json(const ProfileReport& report, const Profile& profile) {
  json j = {{device_key(report.device), report.device.adapter},
            {"provider", report.device.provider},
            {"timestamps", profile.has_timestamps()},
            {"peaks", json()},
            {"parts", json::array()}};
  if (report.peaks) {
    j["peaks"] = {{"bytes_per_s", report.peaks->bytes_per_s},
                  {"flops_per_s", report.peaks->flops_per_s}};
  }
  for (const ProfiledPart& part : report.parts) j["parts"].push_back(part_json(part, profile));
  return j;
}

json trace_json(const ProfileReport& report, const Profile& profile) {
  constexpr int kProcess = 1;
  enum Thread : int { kHost = 1, kGpu = 2 };
  json events = json::array();
  const auto name_of = [&](std::string_view what, int thread, const std::string& text) {
    events.push_back({{"name", what},
                      {"ph", "M"},
                      {"pid", kProcess},
                      {"tid", thread},
                      {"args", {{"name", text}}}});
  };
  name_of("process_name", 0, "pteryx");
  name_of("thread_name", kHost, "host");
  if (!report.device.cpu)
    name_of("thread_name", kGpu, fmt::format("GPU: {}", report.device.adapter));
  const auto span = [&](std::string_view what, int thread, double begin, double end) -> json& {
    events.push_back({{"name", what},
                      {"ph", "X"},
                      {"pid", kProcess},
                      {"tid", thread},
                      {"ts", begin},
                      {"dur", std::max(end - begin, 0.0)}});
    return events.back();
  };
  for (const Profile::HostSpan& h : profile.host())
    span(name(h.phase), kHost, h.begin_us, h.end_us);
  for (const Profile::GpuSpan& g : profile.gpu()) {
    json& event = span(g.kernel, kGpu, g.begin_us, g.end_us);
    event["args"] = {{"method", g.method}, {"bytes", g.bytes}, {"flops", g.flops}};
    if (g.op.empty()) continue;
    event["args"]["op"] = g.op;
    event["args"]["node"] = g.node;
  }
  return {{"displayTimeUnit", "ns"}, {"traceEvents", events}};
}

}  // namespace pteryx::cli

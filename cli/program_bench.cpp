// SPDX-License-Identifier: BSD-3-Clause
#include "program_bench.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "random_inputs.h"
#include "token_runs.h"
#include "warm_up.h"

#include "pteryx/convert/file_kind.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/profile.h"
#include "pteryx/session/inspect.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct CallTimes {
  std::string method;
  std::string inputs;
  std::vector<double> ms;        // of each repeat
  std::optional<double> gpu_ms;  // of a middling call; none: the GPU has no timestamps
};

double median(std::vector<double> v) {
  std::ranges::sort(v);
  const size_t half = v.size() / 2;
  return v.size() % 2 == 1 ? v[half] : (v[half - 1] + v[half]) / 2;
}

Result<CallTimes> measure_calls(Session& session, const MethodInfo& method, const Shapes& shapes,
                                int repeats, WarmUp& warm_up) {
  PTERYX_ASSIGN(const RandomInputs inputs, random_inputs(method, shapes));
  const auto call = [&]() -> Status {
    PTERYX_ASSIGN([[maybe_unused]] const auto outputs, session.run(method.name, inputs.values));
    return {};
  };
  PTERYX_TRY(warm_up.once(call));
  CallTimes times{.method = method.name, .inputs = inputs.text, .ms = {}, .gpu_ms = {}};
  constexpr int kWarmUps = 2;
  for (int i = -kWarmUps; i < repeats; ++i) {
    PTERYX_TRY(InterruptGuard::check());
    const auto start = Clock::now();
    PTERYX_ASSIGN([[maybe_unused]] const auto outputs, session.run(method.name, inputs.values));
    if (i >= 0) times.ms.push_back(seconds_since(start) * 1e3);
  }
  Profile profile(session.device(), Profile::Detail::kSubmits);
  if (!profile.has_timestamps()) return times;
  std::vector<double> gpu_ms;
  for (int i = -1; i < repeats; ++i) {
    PTERYX_TRY(InterruptGuard::check());
    profile.clear();
    PTERYX_ASSIGN([[maybe_unused]] const auto outputs,
                  session.run(method.name, inputs.values, {.profile = &profile}));
    PTERYX_TRY(gpu::finish(*session.device(), profile));
    double us = 0;
    for (const Profile::GpuSpan& g : profile.gpu()) us += g.end_us - g.begin_us;
    if (i >= 0) gpu_ms.push_back(us / 1e3);
  }
  times.gpu_ms = median(gpu_ms);
  return times;
}

void print_table(const OpenedProgram& p, const std::vector<CallTimes>& rows, uint64_t bytes) {
  const gpu::Caps& caps = p.device->caps();
  print("{}\n", load_header(p.session, bytes, p.load_ms));
  print("{:>16}  {:>10}  {:>10}  {:>16}  {:>10}  inputs\n", "method", "median ms", "best ms",
        "GPU ms", "host ms");
  for (const CallTimes& r : rows) {
    const double all = median(r.ms);
    print("{:>16}  {:>10.3f}  {:>10.3f}  {:>16}  {:>10}  {}\n", printable(r.method), all,
          *std::ranges::min_element(r.ms),
          r.gpu_ms ? fmt::format("{:.3f} ({:.0f} %)", *r.gpu_ms, *r.gpu_ms / all * 100) : "-",
          r.gpu_ms ? fmt::format("{:.3f}", std::max(all - *r.gpu_ms, 0.0)) : "-", r.inputs);
  }
  if (!caps.timestamps && !caps.cpu) print("The GPU has no timestamps: its share is not known.\n");
}

json as_json(const OpenedProgram& p, const std::vector<CallTimes>& rows, uint64_t bytes) {
  json j = {{device_key(p.device->caps()), p.device->caps().adapter},
            {"provider", p.device->caps().provider},
            {"gpu_bytes", bytes},
            {"load_ms", p.load_ms},
            {"rows", json::array()}};
  add_use(j, p.session);
  for (const CallTimes& r : rows) {
    const double all = median(r.ms);
    j["rows"].push_back({{"method", r.method},
                         {"inputs", r.inputs},
                         {"median_ms", all},
                         {"best_ms", *std::ranges::min_element(r.ms)},
                         {"repeats_ms", r.ms},
                         {"gpu_ms", r.gpu_ms ? json(*r.gpu_ms) : json()},
                         {"host_ms", r.gpu_ms ? json(std::max(all - *r.gpu_ms, 0.0)) : json()}});
  }
  return j;
}

}  // namespace

Status refuse_token_options(bool given, const std::string& path) {
  if (!given) return {};
  return invalid_argument(fmt::format(
      "-p, -n and -c count tokens of a language model, and calls of a method of {} are measured",
      path));
}

bool runs_as_language_model(const ModelArguments& a) {
  const auto kind = convert::file_kind(a.path);
  if (!kind.ok() || *kind != convert::FileKind::kProgram) return true;
  const auto tokens = is_language_model(a.path, a.run.data_files);
  return !tokens.ok() || *tokens;
}

void add_measured_method(CLI::App& app, std::string& method, std::vector<std::string>& shapes) {
  app.add_option("-m,--method", method, "measure whole calls of this method; otherwise of all")
      ->type_name("NAME");
  add_shapes(app, shapes);
}

Result<OpenedProgram> open_measured(const ProgramArguments& a, Progress& progress) {
  const auto start = Clock::now();
  PTERYX_TRY(expect_program(a.path));
  PTERYX_ASSIGN(const std::shared_ptr<gpu::Device> device, open_device(a.run, &progress));
  LoadOptions options = load_options(a.run, device, &progress);
  if (!a.method.empty()) options.methods = {a.method};
  PTERYX_ASSIGN(Session session, Session::load(a.path, options));
  return OpenedProgram{std::move(session), device, seconds_since(start) * 1e3};
}

int bench_program(const ProgramArguments& a, Progress& progress) {
  const auto shapes = parse_shapes(a.shapes);
  if (!shapes.ok()) return fail(shapes.status());
  auto opened = open_measured(a, progress);
  if (!opened.ok()) return fail(opened.status());
  const auto methods = methods_to_measure(opened->session, a.method, a.path);
  if (!methods.ok()) return fail(methods.status());
  progress.begin("measuring");
  std::vector<CallTimes> rows;
  WarmUp warm_up(opened->device->caps());
  for (const MethodInfo* m : *methods) {
    auto row = measure_calls(opened->session, *m, *shapes, a.repeats, warm_up);
    if (!row.ok()) return fail(row.status());
    rows.push_back(std::move(row).value());
  }
  progress.end();
  const uint64_t bytes = opened->device->counters().buffer_bytes_alive;
  if (a.as_json) {
    print_json(as_json(*opened, rows, bytes));
  } else {
    print_table(*opened, rows, bytes);
  }
  return kSuccess;
}

}  // namespace pteryx::cli

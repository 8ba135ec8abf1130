// pteryx verify: runs every case of a manifest and compares with its goldens.
// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "document.h"
#include "interrupt.h"

#include "pteryx/base/file.h"
#include "pteryx/ops/op.h"
#include "pteryx/session/inspect.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

struct Options {
  RunOptions run;
  std::string manifest;
  std::vector<std::string> only;
  std::vector<std::string> suites;
  bool as_json = false;
};

struct Outcome {
  std::string name;
  std::string operators;
  size_t runs = 0;
  double worst = 0;         // |got - want|
  double milliseconds = 0;  // of the last run
  std::string problem;      // "" = passed
};

// Files of goldens, each mapped once.
class Files {
 public:
  explicit Files(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::string path(const std::string& file) const { return (folder_ / file).string(); }
  Result<Bytes> open(const std::string& file) {
    auto& entry = files_[file];
    if (entry == nullptr) {
      PTERYX_ASSIGN(entry, MappedFile::open(path(file)));
    }
    return entry->bytes();
  }

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

Result<TensorView> golden(Files& files, const json& t) {
  const std::string type = t.at("dtype").get<std::string>();
  const auto dtype = dtype_from_numpy_name(type);
  if (!dtype) return invalid_argument(fmt::format("manifest: unknown dtype '{}'", type));
  const auto shape = t.at("shape").get<std::vector<int64_t>>();
  const auto count = checked_numel(shape, size_bytes(*dtype));
  if (!count || shape.size() > kMaxRank)
    return invalid_argument(fmt::format("manifest: shape {}", to_string(shape)));
  PTERYX_ASSIGN(const Bytes file, files.open(t.at("file").get<std::string>()));
  const uint64_t bytes = static_cast<uint64_t>(*count) * size_bytes(*dtype);
  const json& offset = t.at("offset");
  if (!offset.is_number_unsigned()) {
    return invalid_argument(
        fmt::format("manifest: offset: expected a number of bytes, got {}", offset.type_name()));
  }
  const auto data = slice(file, offset.get<uint64_t>(), bytes);
  if (!data)
    return invalid_argument(fmt::format("manifest: {} ends before offset {} + {}",
                                        t.at("file").dump(), t.at("offset").dump(), bytes));
  return TensorView{.dtype = *dtype,
                    .dims = Dims(std::span<const int64_t>(shape)),
                    .data = data->data(),
                    .size_bytes = bytes};
}

// A tensor, or a plain number written as it is or as {"scalar": 3}.
Result<Value> golden_value(Files& files, const json& t) {
  if (t.is_object() && t.contains("scalar")) return golden_value(files, t["scalar"]);
  if (t.is_object()) {
    PTERYX_ASSIGN(const TensorView v, golden(files, t));
    return Value(v);
  }
  if (t.is_boolean()) return Value(t.get<bool>());
  if (t.is_number_integer()) return Value(t.get<int64_t>());
  if (t.is_number()) return Value(t.get<double>());
  if (t.is_string()) return Value(t.get<std::string>());
  return Value();
}

std::optional<double> as_number(const Value& v) {
  if (const auto* i = v.integer()) return static_cast<double>(*i);
  if (const auto* d = v.number()) return *d;
  if (const auto* b = v.flag()) return *b ? 1.0 : 0.0;
  return std::nullopt;
}

std::string compare(const Value& value, const TensorView& want, double atol, double rtol,
                    double& worst);

// "" if got is within tolerance of want everywhere.
std::string compare(const Value& got, const Value& want, double atol, double rtol, double& worst) {
  if (want.tensor() != nullptr) return compare(got, *want.tensor(), atol, rtol, worst);
  const auto w = as_number(want);
  const auto g = as_number(got);
  if (!w || !g)
    return want.text() != nullptr && got.text() != nullptr && *want.text() == *got.text()
               ? ""
               : "is of another kind";
  worst = std::max(worst, std::fabs(*g - *w));
  return std::fabs(*g - *w) <= atol + rtol * std::fabs(*w)
             ? ""
             : fmt::format("expected {}, got {}", *w, *g);
}

std::string compare(const Value& value, const TensorView& want, double atol, double rtol,
                    double& worst) {
  TensorView got;
  int64_t scalar = 0;
  if (const auto* t = value.tensor()) {
    got = *t;
  } else if (const auto* i = value.integer()) {
    scalar = *i;
    got = tensor<int64_t>(want.dims, std::span<const int64_t>(&scalar, 1));
  } else {
    return "is not a tensor";
  }
  if (got.dtype != want.dtype)
    return fmt::format("type: expected {}, got {}", name(want.dtype), name(got.dtype));
  if (got.dims != want.dims)
    return fmt::format("shape: expected {}, got {}", to_string(want.dims), to_string(got.dims));
  const auto at = [](const TensorView& v, int64_t i) {
    return ops::HostTensor{v.dtype, v.dims, static_cast<std::byte*>(const_cast<void*>(v.data))}
        .number(i);
  };
  std::string problem;
  for (int64_t i = 0; i < numel(want.dims); ++i) {
    const double g = at(got, i);
    const double w = at(want, i);
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const double error = std::fabs(g - w);
    worst = std::isnan(error) ? error : std::max(worst, error);
    if (!(error <= atol + rtol * std::fabs(w)) && problem.empty()) {
      problem = fmt::format("element {}: expected {}, got {}", i, w, g);
    }
  }
  return problem;
}

// The method of a run: its own, or the one of the case.
std::string method_of(const json& run, const json& c) {
  return run.value("method", c.value("method", "forward"));
}

std::vector<std::string> methods_of(const json& c) {
  std::vector<std::string> methods;
  for (const json& run : c.at("runs")) {
    std::string method = method_of(run, c);
    if (std::find(methods.begin(), methods.end(), method) == methods.end())
      methods.push_back(std::move(method));
  }
  return methods;
}

Status run_case(const json& c, Files& files, const Options& o,
                const std::shared_ptr<gpu::Device>& device, Outcome& outcome) {
  LoadOptions options = load_options(o.run, device, nullptr);
  for (const json& f : c.value("ptd", json::array()))
    options.data_files.push_back(files.path(f.get<std::string>()));
  const std::string program = files.path(c.at("pte").get<std::string>());
  if (!c.at("runs").is_array() || c.at("runs").empty())
    return invalid_argument("expected at least one run, got none");
  options.methods = methods_of(c);
  const gpu::Caps& caps = device->caps();
  const InspectOptions counted{.data_files = options.data_files,
                               .limits = caps.cpu ? std::optional(caps) : std::nullopt};
  if (const auto report = inspect(program, counted); report.ok()) {
    uint32_t gpu = 0;
    uint32_t cpu = 0;
    for (const MethodReport& m : report->methods) {
      if (std::find(options.methods.begin(), options.methods.end(), m.info.name) ==
          options.methods.end())
        continue;
      for (const OperatorUse& use : m.operators) {
        gpu += use.gpu;
        cpu += use.cpu;
      }
    }
    outcome.operators = caps.cpu   ? fmt::format("{} CPU", cpu)
                        : cpu == 0 ? fmt::format("{} GPU", gpu)
                                   : fmt::format("{} GPU, {} CPU", gpu, cpu);
  }
  PTERYX_ASSIGN(Session session, Session::load(program, options));
  const double atol = c.value("atol", 1e-4);
  const double rtol = c.value("rtol", 1e-4);
  for (const json& run : c.at("runs")) {
    std::vector<Value> inputs;
    for (const json& t : run.at("inputs")) {
      PTERYX_ASSIGN(Value v, golden_value(files, t));
      inputs.push_back(std::move(v));
    }
    const auto start = std::chrono::steady_clock::now();
    PTERYX_ASSIGN(const auto outputs, session.run(method_of(run, c), inputs));
    outcome.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const json& wanted = run.at("outputs");
    if (wanted.size() != outputs.size()) {
      return invalid_argument(fmt::format("run {}: expected {} outputs, got {}", outcome.runs,
                                          wanted.size(), outputs.size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      PTERYX_ASSIGN(const Value want, golden_value(files, wanted[i]));
      const std::string problem = compare(outputs[i], want, atol, rtol, outcome.worst);
      if (!problem.empty()) {
        return Status(Code::kInvalidArgument,
                      fmt::format("run {} output {} {}", outcome.runs, i, problem));
      }
    }
    ++outcome.runs;
  }
  return {};
}

bool wanted(const json& c, const Options& o) {
  const std::string case_name = c.at("name").get<std::string>();
  const auto matches = [&](const std::string& pattern) {
    return pattern.ends_with('*') ? case_name.starts_with(pattern.substr(0, pattern.size() - 1))
                                  : case_name == pattern;
  };
  if (!o.only.empty() && std::none_of(o.only.begin(), o.only.end(), matches)) return false;
  return o.suites.empty() ||
         std::find(o.suites.begin(), o.suites.end(), c.value("suite", "")) != o.suites.end();
}

void print_table(const std::vector<Outcome>& outcomes) {
  size_t width = 7;
  size_t operators = 9;
  for (const Outcome& r : outcomes) {
    width = std::max(width, r.name.size());
    operators = std::max(operators, r.operators.size());
  }
  print("{:{}}  {:{}}  {:>4}  {:>13}  {:>9}\n", "program", width, "operators", operators, "runs",
        "largest error", "ms");
  for (const Outcome& r : outcomes) {
    print("{:{}}  {:{}}  {:>4}  {:>13.3g}  {:>9.3f}  {}\n", printable(r.name), width, r.operators,
          operators, r.runs, r.worst, r.milliseconds, r.problem.empty() ? "ok" : "FAILED");
    if (!r.problem.empty()) print("    {}\n", printable(r.problem));
  }
}

// What the parser says of a member that is missing or of another type, without its own number.
std::string without_tag(std::string_view what) {
  const size_t end = what.find("] ");
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

Result<json> read_manifest(const std::string& path) {
  PTERYX_ASSIGN(const auto file, MappedFile::open(path));
  PTERYX_ASSIGN(json manifest, read_document(file->bytes(), path));
  const bool fits =
      manifest.is_object() && manifest.contains("cases") && manifest["cases"].is_array();
  if (!fits) {
    return invalid_program(
        fmt::format("{} is not a manifest: expected an object with a list \"cases\"", path));
  }
  return manifest;
}

int verify(const Options& o) {
  const InterruptGuard guard;
  std::filesystem::path path = o.manifest;
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) path /= "manifest.json";
  const auto manifest = read_manifest(path.string());
  if (!manifest.ok()) return fail(manifest.status());
  Progress progress("running the cases");
  const auto device = open_device(o.run, &progress);
  if (!device.ok()) return fail(device.status());
  const gpu::Caps& caps = (*device)->caps();
  Files files(path.parent_path());
  std::vector<Outcome> outcomes;
  size_t failed = 0;
  progress.begin("running the cases");
  size_t done = 0;
  for (const json& c : (*manifest)["cases"]) {
    if (const Status s = InterruptGuard::check(); !s.ok()) return fail(s);
    progress.set(done++, (*manifest)["cases"].size());
    Outcome outcome;
    try {
      if (!wanted(c, o)) continue;
      outcome.name = c.at("name").get<std::string>();
      if (const Status s = run_case(c, files, o, *device, outcome); !s.ok())
        outcome.problem = s.message();
    } catch (const json::exception& e) {
      outcome.problem = fmt::format("manifest: {}", without_tag(e.what()));
    }
    if (!outcome.problem.empty()) ++failed;
    outcomes.push_back(std::move(outcome));
  }
  progress.end();
  if (outcomes.empty()) return fail(invalid_argument("no case of the manifest matches"));
  if (o.as_json) {
    json list = json::array();
    for (const Outcome& r : outcomes) {
      list.push_back({{"name", r.name},
                      {"operators", r.operators},
                      {"runs", r.runs},
                      {"largest_error", r.worst},
                      {"ms", r.milliseconds},
                      {"ok", r.problem.empty()},
                      {"problem", r.problem}});
    }
    const json whole = {{device_key(caps), caps.adapter},
                        {"provider", caps.provider},
                        {"cases", list},
                        {"passed", outcomes.size() - failed},
                        {"failed", failed}};
    print_json(whole);
  } else {
    print("{}\n", device_header(caps));
    print_table(outcomes);
    print("{} passed, {} failed on {}\n", outcomes.size() - failed, failed, caps.adapter);
  }
  return failed == 0 ? kSuccess : kFailed;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "verify", "Run the cases of a manifest and compare with their expected results");
  sub->add_option("manifest", o->manifest,
                  "manifest.json beside its programs and goldens, or its folder")
      ->required()
      ->type_name("MANIFEST.json");
  const auto is_name = [](std::string_view word) {
    return !word.starts_with('-') && !word.ends_with(".json") && word.find('/') == word.npos;
  };
  add_words(*sub, "--only", o->only, is_name, "cases to run: NAME or PREFIX*")
      ->type_name("NAME,...");
  add_words(*sub, "--suite", o->suites, is_name, "suites whose cases to run")
      ->type_name("NAME,...");
  add_json(*sub, o->as_json, "print the results as JSON");
  add_run_options(*sub, o->run);
  sub->callback([o, &action] { action = [o] { return verify(*o); }; });
}

}  // namespace pteryx::cli

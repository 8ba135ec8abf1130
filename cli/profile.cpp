// pteryx profile: what each kernel and each node of a model takes on the GPU, and the host besides.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/profile.h"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model.h"
#include "profile_report.h"
#include "program_bench.h"
#include "random_inputs.h"
#include "token_runs.h"

#include "pteryx/base/output_file.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/session/steps.h"

namespace pteryx::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  ModelArguments model;
  int64_t prompt = 128;
  int64_t tokens = 16;
  int64_t context = 0;
  std::string method;
  std::vector<std::string> shapes;
  int repeats = 3;
  std::string trace;
  bool as_json = false;
  bool asks_for_tokens = false;  // -p, -n or -c was given
};

// Measures parts of a profile one after the other.
class Profiling {
 public:
  explicit Profiling(const std::shared_ptr<gpu::Device>& device)
      : device_(device), profile_(device) {}

  // Of the GPU, to compare with. Nothing where it has no timestamps.
  Status measure_peaks() {
    report_.device = device_->caps();
    if (!profile_.has_timestamps()) return {};
    PTERYX_ASSIGN(report_.peaks, gpu::measure_peaks(*device_));
    return {};
  }

  // `run` is profiled with what it is given.
  Status add(std::string name, std::string unit, double units,
             const std::function<Status(Profile*)>& run) {
    PTERYX_TRY(InterruptGuard::check());
    ProfiledPart part{.name = std::move(name),
                      .unit = std::move(unit),
                      .units = units,
                      .gpu_begin = profile_.gpu().size(),
                      .host_begin = profile_.host().size()};
    const auto start = Clock::now();
    PTERYX_TRY(run(&profile_));
    part.wall_us = seconds_since(start) * 1e6;
    PTERYX_TRY(gpu::finish(*device_, profile_));
    part.gpu_end = profile_.gpu().size();
    part.host_end = profile_.host().size();
    report_.parts.push_back(std::move(part));
    return {};
  }

  const ProfileReport& report() const { return report_; }
  const Profile& profile() const { return profile_; }

 private:
  std::shared_ptr<gpu::Device> device_;
  Profile profile_;
  ProfileReport report_;
};

Status profile_text(Profiling& p, llm::Sequence& s, int64_t context, int64_t tokens) {
  PTERYX_TRY(begin_text(s, context));
  PTERYX_ASSIGN([[maybe_unused]] const double warm, continue_text(s, context, tokens));
  PTERYX_TRY(begin_text(s, context));
  return p.add(fmt::format("text {}", tokens), "token", static_cast<double>(tokens),
               [&](Profile* profile) -> Status {
                 s.steps().set(profile);
                 auto host = continue_text(s, context, tokens);
                 s.steps().set(nullptr);
                 return host.ok() ? Status() : std::move(host).status();
               });
}

Status profile_prompt(Profiling& p, llm::Sequence& s, int64_t tokens) {
  const std::vector<TokenId> ids = some_tokens(tokens, s.model().info().vocabulary);
  PTERYX_TRY(read_prompt(s, ids));
  return p.add(fmt::format("prompt {}", tokens), "prompt", 1, [&](Profile* profile) {
    s.steps().set(profile);
    Status read = read_prompt(s, ids);
    s.steps().set(nullptr);
    return read;
  });
}

Status profile_tokens(const Options& o, Profiling& p, llm::Model& model) {
  PTERYX_ASSIGN(const std::unique_ptr<llm::Sequence> s, llm::Sequence::create(model));
  const int64_t context = model.info().context;
  if (o.prompt > context || o.context + o.tokens + 1 > context) {
    return invalid_argument(
        fmt::format("the context holds {} tokens: expected a prompt of at most that, got {}, and a "
                    "text that ends before it, got {} after {}",
                    context, o.prompt, o.tokens, o.context));
  }
  if (o.prompt > 0) PTERYX_TRY(profile_prompt(p, *s, o.prompt));
  return o.tokens > 0 ? profile_text(p, *s, o.context, o.tokens) : Status();
}

Status profile_calls(const Options& o, const Shapes& shapes, Profiling& p, Session& session) {
  PTERYX_ASSIGN(const auto methods, methods_to_measure(session, o.method, o.model.path));
  for (const MethodInfo* m : methods) {
    PTERYX_ASSIGN(const RandomInputs inputs, random_inputs(*m, shapes));
    const auto run = [&](Profile* profile) -> Status {
      for (int i = 0; i < (profile == nullptr ? 1 : o.repeats); ++i) {
        PTERYX_ASSIGN([[maybe_unused]] const auto outputs,
                      session.run(m->name, inputs.values, {.profile = profile}));
      }
      return {};
    };
    PTERYX_TRY(run(nullptr));
    PTERYX_TRY(p.add(m->name, "call", o.repeats, run));
  }
  return {};
}

int finish_report(const Options& o, const Profiling& p) {
  if (!o.trace.empty()) {
    std::vector<std::string> inputs = o.model.run.data_files;
    inputs.push_back(o.model.path);
    if (const Status s = check_output(o.trace, inputs); !s.ok()) return fail(s);
    const std::string text = trace_json(p.report(), p.profile())
                                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (const Status s = write_file(o.trace, text); !s.ok()) return fail(s);
  }
  if (o.as_json) {
    print_json(profile_json(p.report(), p.profile()));
  } else {
    print_profile(p.report(), p.profile());
  }
  return kSuccess;
}

int profile_program(const Options& o, Progress& progress) {
  if (const Status s = refuse_token_options(o.asks_for_tokens, o.model.path); !s.ok())
    return fail(s);
  const auto shapes = parse_shapes(o.shapes);
  if (!shapes.ok()) return fail(shapes.status());
  auto opened = open_measured({.run = o.model.run,
                               .path = o.model.path,
                               .method = o.method,
                               .shapes = {},
                               .repeats = o.repeats},
                              progress);
  if (!opened.ok()) return fail(opened.status());
  progress.begin("measuring");
  Profiling p(opened->device);
  if (const Status s = p.measure_peaks(); !s.ok()) return fail(s);
  const Status s = profile_calls(o, *shapes, p, opened->session);
  progress.end();
  return s.ok() ? finish_report(o, p) : fail(s);
}

int profile_model(const Options& o, Progress& progress) {
  const auto opened = open_model(o.model, progress);
  if (!opened.ok()) return fail(opened.status());
  progress.begin("measuring");
  Profiling p(opened->device);
  if (const Status s = p.measure_peaks(); !s.ok()) return fail(s);
  const Status s = profile_tokens(o, p, *opened->model);
  progress.end();
  return s.ok() ? finish_report(o, p) : fail(s);
}

int run(const Options& o) {
  const InterruptGuard guard;
  Progress progress("opening " + o.model.path);
  const bool calls = !o.method.empty() || !o.shapes.empty() || !runs_as_language_model(o.model);
  return calls ? profile_program(o, progress) : profile_model(o, progress);
}

}  // namespace

void add_profile(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  o->model.ids_only = true;
  CLI::App* sub = app.add_subcommand(
      "profile", "Show what each kernel and node takes on the GPU, and what the host does");
  add_model_arguments(*sub, o->model);
  sub->get_option("--precision")->default_str("f16 for language models, else f32");
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  add_number<int64_t>(*sub, "-p,--prompt", o->prompt, {0, kMost},
                      "length of the prompt to profile, in tokens; 0: none");
  add_number<int64_t>(*sub, "-n,--tokens", o->tokens, {0, kMost},
                      "number of new tokens to profile; 0: none");
  add_number<int64_t>(*sub, "-c,--context", o->context, {0, kMost},
                      "context length to generate from");
  add_measured_method(*sub, o->method, o->shapes);
  add_number<int>(*sub, "-r,--repeats", o->repeats, {1, 1000}, "calls of a method to profile");
  sub->add_option("--trace", o->trace,
                  "write host and GPU on one time line, in the format of Chrome and Perfetto")
      ->type_name("OUT.json");
  add_json(*sub, o->as_json, "print as JSON");
  sub->callback([o, sub, &action] {
    for (const char* name : {"--prompt", "--tokens", "--context"})
      o->asks_for_tokens = o->asks_for_tokens || sub->get_option(name)->count() > 0;
    action = [o] { return run(*o); };
  });
}

}  // namespace pteryx::cli

// pteryx bench: tokens per second of prompts and of generated text; of other programs, see
// program_bench.h. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model.h"
#include "program_bench.h"
#include "token_runs.h"
#include "warm_up.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct Options {
  ModelArguments model;
  std::vector<int64_t> prompts = {128, 512};
  std::vector<int64_t> contexts = {0};
  int64_t tokens = 128;
  std::string method;
  std::vector<std::string> shapes;
  int repeats = 5;
  bool as_json = false;
  bool asks_for_tokens = false;  // -p, -n or -c was given
};

struct Row {
  std::string test;
  int64_t tokens = 0;
  int64_t context = 0;
  std::vector<double> speeds;  // tokens per second, of each repeat
  double host_us = 0;          // of the host's own work, per step
};

Result<Row> bench_prompt(llm::Sequence& s, int64_t count, int repeats, WarmUp& warm_up) {
  Row row{.test = fmt::format("prompt {}", count), .tokens = count};
  const std::vector<TokenId> ids = some_tokens(count, s.model().info().vocabulary);
  PTERYX_TRY(warm_up.once([&] { return read_prompt(s, ids); }));
  for (int i = -1; i < repeats; ++i) {
    PTERYX_TRY(InterruptGuard::check());
    const auto start = Clock::now();
    PTERYX_TRY(read_prompt(s, ids));
    if (i >= 0) row.speeds.push_back(static_cast<double>(count) / seconds_since(start));
  }
  return row;
}

// New tokens from a context of that length on.
Result<Row> bench_text(llm::Sequence& s, int64_t context, int64_t count, int repeats,
                       WarmUp& warm_up) {
  Row row{.test = fmt::format("text {}", count), .tokens = count, .context = context};
  const auto text = [&]() -> Status {
    PTERYX_TRY(begin_text(s, context));
    PTERYX_ASSIGN([[maybe_unused]] const double host_s, continue_text(s, context, count));
    return {};
  };
  PTERYX_TRY(warm_up.once(text));
  double host = 0;
  for (int i = -1; i < repeats; ++i) {
    PTERYX_TRY(InterruptGuard::check());
    PTERYX_TRY(begin_text(s, context));
    const auto start = Clock::now();
    PTERYX_ASSIGN(host, continue_text(s, context, count));
    if (i >= 0) row.speeds.push_back(static_cast<double>(count) / seconds_since(start));
  }
  row.host_us = host / static_cast<double>(count) * 1e6;
  return row;
}

double mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return v.empty() ? 0 : sum / static_cast<double>(v.size());
}
double best(const std::vector<double>& v) {
  return v.empty() ? 0 : *std::max_element(v.begin(), v.end());
}
double deviation(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += (x - mean(v)) * (x - mean(v));
  return v.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(v.size() - 1));
}

void print_table(const OpenedModel& m, const std::vector<Row>& rows, uint64_t bytes) {
  print("{}\n", load_header(m.model->session(), bytes, m.load_ms));
  print("{:>12}  {:>8}  {:>20}  {:>10}  {:>9}\n", "test", "context", "tokens/s", "best", "host us");
  for (const Row& r : rows) {
    print("{:>12}  {:>8}  {:>20}  {:>10.1f}  {:>9}\n", r.test, r.context,
          fmt::format("{:.1f} +- {:.1f}", mean(r.speeds), deviation(r.speeds)), best(r.speeds),
          r.host_us > 0 ? fmt::format("{:.1f}", r.host_us) : "");
  }
}

json as_json(const OpenedModel& m, const std::vector<Row>& rows, uint64_t bytes) {
  json j = {{device_key(m.device->caps()), m.device->caps().adapter},
            {"provider", m.device->caps().provider},
            {"gpu_bytes", bytes},
            {"load_ms", m.load_ms},
            {"rows", json::array()}};
  add_use(j, m.model->session());
  for (const Row& r : rows) {
    j["rows"].push_back({{"test", r.test},
                         {"tokens", r.tokens},
                         {"context", r.context},
                         {"tokens_per_second", mean(r.speeds)},
                         {"best", best(r.speeds)},
                         {"repeats", r.speeds},
                         {"host_us_per_token", r.host_us}});
  }
  return j;
}

int bench(const Options& o) {
  const InterruptGuard guard;
  Progress progress("opening " + o.model.path);
  if (!o.method.empty() || !o.shapes.empty() || !runs_as_language_model(o.model)) {
    if (const Status s = refuse_token_options(o.asks_for_tokens, o.model.path); !s.ok())
      return fail(s);
    return bench_program({.run = o.model.run,
                          .path = o.model.path,
                          .method = o.method,
                          .shapes = o.shapes,
                          .repeats = o.repeats,
                          .as_json = o.as_json},
                         progress);
  }
  const auto opened = open_model(o.model, progress);
  if (!opened.ok()) return fail(opened.status());
  const llm::Model& m = *opened->model;
  const auto sequence = llm::Sequence::create(*opened->model);
  if (!sequence.ok()) return fail(sequence.status());
  std::vector<Row> rows;
  WarmUp warm_up(opened->device->caps());
  const auto add = [&](Result<Row> row) {
    if (row.ok()) rows.push_back(*row);
    return row.ok() ? Status() : std::move(row).status();
  };
  progress.begin("measuring");
  for (const int64_t count : o.prompts) {
    if (count > m.info().context) {
      note("pteryx: prompt of {} tokens skipped: the context holds {}\n", count, m.info().context);
      continue;
    }
    if (const Status s = add(bench_prompt(**sequence, count, o.repeats, warm_up)); !s.ok())
      return fail(s);
  }
  for (const int64_t context : o.contexts) {
    if (o.tokens == 0) break;
    if (context + o.tokens + 1 > m.info().context) {
      note("pteryx: {} new tokens at context {} skipped: the context holds {}\n", o.tokens, context,
           m.info().context);
      continue;
    }
    if (const Status s = add(bench_text(**sequence, context, o.tokens, o.repeats, warm_up));
        !s.ok())
      return fail(s);
  }
  progress.end();
  const uint64_t bytes = opened->device->counters().buffer_bytes_alive;
  if (o.as_json) {
    print_json(as_json(*opened, rows, bytes));
  } else {
    print_table(*opened, rows, bytes);
  }
  return kSuccess;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  o->model.ids_only = true;
  CLI::App* sub = app.add_subcommand(
      "bench", "Measure prefill and decode speed of a language model, or calls of any program");
  add_model_arguments(*sub, o->model);
  sub->get_option("--precision")->default_str("f16 for language models, else f32");
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  add_numbers<int64_t>(*sub, "-p,--prompt", o->prompts, {1, kMost},
                       "prompt lengths to measure, in tokens");
  add_number<int64_t>(*sub, "-n,--tokens", o->tokens, {0, kMost},
                      "number of new tokens to measure; 0: none");
  add_numbers<int64_t>(*sub, "-c,--context", o->contexts, {0, kMost},
                       "context lengths to generate from");
  add_measured_method(*sub, o->method, o->shapes);
  add_number<int>(*sub, "-r,--repeats", o->repeats, {1, 1000}, "repeats of each measurement");
  add_json(*sub, o->as_json, "print as JSON");
  sub->callback([o, sub, &action] {
    for (const char* name : {"--prompt", "--tokens", "--context"})
      o->asks_for_tokens = o->asks_for_tokens || sub->get_option(name)->count() > 0;
    action = [o] { return bench(*o); };
  });
}

}  // namespace pteryx::cli

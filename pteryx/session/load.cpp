// Loading a session, as a job. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/load.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pteryx/graph/build.h"
#include "pteryx/graph/passes/passes.h"
#include "pteryx/ops/table.h"
#include "pteryx/session/impl.h"
#include "pteryx/session/inspect.h"
#include "pteryx/session/limits.h"

namespace pteryx {

// In this order: all methods are planned, and their memory counted, before anything is made on the
// device; then weights are uploaded and shaders compiled at the same time.
struct SessionLoad::Impl {
  enum class Stage : uint8_t { kProgram, kPlans, kMethods, kDone };
  struct Planned {
    graph::Graph graph;
    Layout layout;
  };

  std::string name;  // of the program's source
  program::ProgramLoad program;
  LoadOptions options;
  Stage stage = Stage::kProgram;
  std::unique_ptr<Session::Impl> session = std::make_unique<Session::Impl>();
  ops::PlanContext context = {};
  std::vector<Planned> planned = {};
  MemoryNeed need = {};
  graph::CacheTypes caches = {};  // of all methods
  uint64_t uploaded = 0;

  Status tell(std::string_view what, uint64_t done = 0, uint64_t total = 0) const {
    if (!options.progress || options.progress(what, done, total)) return {};
    return {Code::kCancelled, fmt::format("load cancelled while {}", what)};
  }
  bool is_selected(std::string_view method) const {
    return options.methods.empty() || std::find(options.methods.begin(), options.methods.end(),
                                                method) != options.methods.end();
  }
  Result<bool> advance();
  Status check_options();
  std::string set_caches(graph::Graph& g);
  Status check_caches() const;
  Status plan(const program::MethodRecord& record);
  Status make_methods();
};

SessionLoad::SessionLoad(SourcePtr program, std::vector<SourcePtr> data, LoadOptions options)
    : impl_(new Impl{.name = program->name(),
                     .program = {program, std::move(data)},
                     .options = std::move(options)}) {}
SessionLoad::SessionLoad(SessionLoad&&) noexcept = default;
SessionLoad& SessionLoad::operator=(SessionLoad&&) noexcept = default;
SessionLoad::~SessionLoad() = default;

Result<bool> SessionLoad::advance() { return impl_->advance(); }
Session SessionLoad::take() { return Session(std::move(impl_->session)); }

Result<bool> SessionLoad::Impl::advance() {
  switch (stage) {
    case Stage::kProgram: {
      PTERYX_TRY(tell("reading the program"));
      PTERYX_ASSIGN(const bool read, program.advance());
      if (!read) return false;
      session->program = program.take();
      PTERYX_TRY(check_options());
      stage = Stage::kPlans;
      [[fallthrough]];
    }
    case Stage::kPlans:
      for (const program::MethodRecord& record : session->program.methods()) {
        if (is_selected(record.name)) PTERYX_TRY(plan(record));
      }
      PTERYX_TRY(check_caches());
      PTERYX_TRY(make_methods());
      stage = Stage::kMethods;
      [[fallthrough]];
    case Stage::kMethods: {
      bool all = true;
      for (const auto& m : session->methods) {
        auto there = m->advance();
        if (!there.ok()) return std::move(there).status().during(fmt::format("loading {}", name));
        all = all && *there;
      }
      if (!all) {
        if (!session->constants->is_uploading()) PTERYX_TRY(tell("compiling shaders"));
        return false;
      }
      session->constants->on_bytes(nullptr);
      PTERYX_TRY(session->device->take_error());
      stage = Stage::kDone;
      [[fallthrough]];
    }
    case Stage::kDone: break;
  }
  return true;
}

Status SessionLoad::Impl::check_options() {
  for (const std::string& m : options.methods) {
    if (session->program.find(m) == nullptr)
      return invalid_argument(fmt::format("{} has no method '{}'", name, m));
  }
  if (options.device == nullptr)
    return invalid_argument(fmt::format("loading {}: no device was given", name));
  if (options.kv_cache && options.kv_cache != DType::kF32 && options.kv_cache != DType::kF16) {
    return invalid_argument(fmt::format("loading {}: kv_cache: expected f32 or f16, got {}", name,
                                        pteryx::name(*options.kv_cache)));
  }
  session->device = options.device;
  PTERYX_ASSIGN(context,
                make_context(session->device->caps(), options.testing.routes, options.precision));
  return {};
}

// What is to be noted of the method's KV caches.
std::string SessionLoad::Impl::set_caches(graph::Graph& g) {
  if (!options.kv_cache) return "";
  const graph::CacheTypes set = graph::set_cache_type(g, *options.kv_cache);
  if (caches.others == 0 && !set.why.empty()) caches.why = set.why;
  caches.of_type += set.of_type;
  caches.others += set.others;
  if (set.others == 0) return "";
  return fmt::format("{} of {} KV caches of '{}' are not {}: {}", set.others,
                     set.of_type + set.others, g.method, pteryx::name(*options.kv_cache), set.why);
}

Status SessionLoad::Impl::check_caches() const {
  if (!options.kv_cache || caches.of_type > 0) return {};
  return unsupported(fmt::format("{}: no KV cache can be {}: {}", name,
                                 pteryx::name(*options.kv_cache),
                                 caches.why.empty() ? "the program has none" : caches.why));
}

Status SessionLoad::Impl::plan(const program::MethodRecord& record) {
  PTERYX_TRY(tell(fmt::format("planning method '{}'", record.name)));
  const auto where = [&](Status s) {
    return std::move(s).during(fmt::format("loading method '{}' of {}", record.name, name));
  };
  auto graph = graph::build_graph(session->program, record, ops::lookup());
  if (!graph.ok()) return where(std::move(graph).status());
  if (options.all_logits) graph::keep_all_logits(*graph);
  if (options.testing.fuse) graph::run_passes(*graph, ops::lookup());
  std::string note = set_caches(*graph);
  if (options.sampling) graph::append_sampling(*graph, ops::lookup());
  auto layout = make_layout(*graph, context, {.cpu_only = options.cpu_only});
  if (!layout.ok()) return where(std::move(layout).status());
  Status fits = check_limits(*graph, *layout, session->device->caps());
  if (!fits.ok()) return where(std::move(fits));
  need.constants += layout->memory.constants;
  need.activations += layout->memory.gpu_total() - layout->memory.constants;
  session->infos.push_back(describe_method(*graph, *layout));
  session->infos.back().note = std::move(note);
  planned.push_back({std::move(graph).value(), std::move(layout).value()});
  return {};
}

Status SessionLoad::Impl::make_methods() {
  if (options.memory_limit != 0 && need.gpu_total() > options.memory_limit) {
    return memory_error(fmt::format("{} needs {} bytes of GPU memory, the limit is {}", name,
                                    need.gpu_total(), options.memory_limit));
  }
  const std::span<const SourcePtr> sources = session->program.sources();
  session->constants = std::make_unique<exec::ConstantPool>(
      session->device, std::vector<SourcePtr>(sources.begin(), sources.end()));
  session->constants->on_bytes([this](uint64_t bytes) {
    uploaded += bytes;
    return tell("uploading weights", uploaded, need.constants);
  });
  for (Planned& p : planned) {
    session->methods.push_back(
        std::make_unique<exec::Method>(std::move(p.graph), std::move(p.layout), context,
                                       *session->constants, options.testing.plan_cache));
  }
  planned.clear();
  return {};
}

}  // namespace pteryx

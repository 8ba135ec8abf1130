// Loading a session, as a job. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/load.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/expect_weights.h"
#include "pteryx/base/lock.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/graph/build.h"
#include "pteryx/ops/table.h"
#include "pteryx/session/half_scales.h"
#include "pteryx/session/host_constants.h"
#include "pteryx/session/host_scratch.h"
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
    std::string note = {};
    Layout layout = {};
    exec::StateGroup* states = nullptr;
    std::vector<exec::StateRoot> state_roots = {};
  };

  std::string name;  // of the program's source
  program::ProgramLoad program;
  LoadOptions options;
  Stage stage = Stage::kProgram;
  std::unique_ptr<Session::Impl> session = std::make_unique<Session::Impl>();
  ops::PlanContext context = {};
  std::vector<Planned> planned = {};
  std::vector<SourcePtr> sources = {};  // of constants: the program's, and behind them those made
  MemoryNeed need = {};
  exec::StateGroup* shared_states = nullptr;  // of the methods that share some
  exec::CpuKernels kernels = {};
  uint64_t uploaded = 0;

  Status tell(std::string_view what, uint64_t done = 0, uint64_t total = 0) const {
    if (!options.progress || options.progress(what, done, total)) return {};
    return {Code::kCancelled, fmt::format("load cancelled while {}", what)};
  }
  Status during(Status s, std::string_view method) const {
    return std::move(s).during(fmt::format("loading method '{}' of {}", method, name));
  }
  // In which operands are kept: CPU kernels take them as they are in the file.
  Precision kept_precision() const {
    return session->device->caps().cpu ? Precision::kF32 : options.precision;
  }
  Result<bool> advance();
  Status lock_weights();
  Status check_options();
  std::vector<const program::MethodRecord*> selected() const;
  Status build_graphs();
  Status set_caches();
  void set_scales();
  Status plan(Planned& p);
  void set_pool(const Layout& layout);
  Status add_states(Planned& p);
  HostConstants host_constants() const {
    return {sources, session->program.sources().size(), {kernels.pool.get(), kernels.precision}};
  }
  Status check_memory();
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
      PTERYX_TRY(build_graphs());
      PTERYX_TRY(set_caches());
      set_scales();
      for (Planned& p : planned) PTERYX_TRY(plan(p));
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
      PTERYX_TRY(lock_weights());
      stage = Stage::kDone;
      [[fallthrough]];
    }
    case Stage::kDone: break;
  }
  return true;
}

// Files, and what was made of scales.
Status SessionLoad::Impl::lock_weights() {
  if (!options.lock || !session->device->caps().cpu) return {};
  PTERYX_TRY(tell("reading the weights"));
  for (const SourcePtr& source : session->constants->sources()) PTERYX_TRY(lock_in_memory(*source));
  return {};
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
  if (options.threads > LoadOptions::kMostThreads) {
    return invalid_argument(fmt::format("loading {}: threads: expected at most {}, got {}", name,
                                        LoadOptions::kMostThreads, options.threads));
  }
  session->device = options.device;
  kernels.precision = options.precision;
  PTERYX_ASSIGN(context,
                make_context(session->device->caps(), options.testing.routes, options.precision));
  return {};
}

std::vector<const program::MethodRecord*> SessionLoad::Impl::selected() const {
  std::vector<const program::MethodRecord*> records;
  for (const program::MethodRecord& record : session->program.methods()) {
    const auto& names = options.methods;
    if (names.empty() || std::find(names.begin(), names.end(), record.name) != names.end())
      records.push_back(&record);
  }
  return records;
}

Status SessionLoad::Impl::build_graphs() {
  const std::vector<const program::MethodRecord*> records = selected();
  for (auto& graph : graph::build_graphs(session->program, records, ops::lookup())) {
    const std::string& method = records[planned.size()]->name;
    if (!graph.ok()) return during(std::move(graph).status(), method);
    if (options.all_logits) fuse::keep_all_logits(*graph);
    fuse::run_passes(*graph, ops::lookup(),
                     {.fuse = options.testing.fuse,
                      .most_constant_bytes = most_constant_bytes(session->device->caps()),
                      .precision = kept_precision()});
    planned.push_back({.graph = std::move(graph).value()});
  }
  return {};
}

// A cache that methods share has one type: that of the file where one of them cannot take another.
// What products may round is kept rounded, unless the caller says otherwise.
Status SessionLoad::Impl::set_caches() {
  const bool halves = options.precision == Precision::kF16 && options.testing.fuse;
  if (!options.kv_cache && !halves) return {};
  const DType type = options.kv_cache.value_or(DType::kF16);
  std::set<graph::SharedPlace> fixed;
  for (const Planned& p : planned) fuse::find_fixed_caches(p.graph, type, fixed);
  fuse::CacheTypes all;
  for (Planned& p : planned) {
    const fuse::CacheTypes set = fuse::set_cache_type(p.graph, type, fixed);
    if (all.others == 0 && !set.why.empty()) all.why = set.why;
    all.of_type += set.of_type;
    all.others += set.others;
    if (set.others == 0 || !options.kv_cache) continue;
    p.note = fmt::format("{} of {} KV caches of '{}' are not {}: {}", set.others,
                         set.of_type + set.others, p.graph.method, pteryx::name(type), set.why);
  }
  if (all.of_type > 0 || !options.kv_cache) return {};
  return unsupported(fmt::format("{}: no KV cache can be {}: {}", name, pteryx::name(type),
                                 all.why.empty() ? "the program has none" : all.why));
}

void SessionLoad::Impl::set_scales() {
  const bool cpu = session->device->caps().cpu;
  HalfScales scales(session->program.sources(),
                    cpu ? HalfScales::Kept::kInMemory : HalfScales::Kept::kNowhere);
  if (options.precision == Precision::kF16 && options.testing.fuse) {
    for (Planned& p : planned) scales.convert(p.graph);
  }
  sources = scales.sources();
}

Status SessionLoad::Impl::plan(Planned& p) {
  const std::string& method = p.graph.method;
  PTERYX_TRY(tell(fmt::format("planning method '{}'", method)));
  if (options.sampling) fuse::append_sampling(p.graph, ops::lookup());
  auto layout = make_layout(p.graph, context);
  if (!layout.ok()) return during(std::move(layout).status(), method);
  p.layout = std::move(layout).value();
  Status fits = check_limits(p.graph, p.layout, session->device->caps());
  if (!fits.ok()) return during(std::move(fits), method);
  Status added = add_states(p);
  if (!added.ok()) return during(std::move(added), method);
  need.constants += p.layout.memory.constants;
  need.activations += p.layout.memory.gpu_total() - p.layout.memory.constants;
  set_pool(p.layout);
  HostConstants constants = host_constants();
  constants.add(p.graph, p.layout);
  p.layout.memory.in_place = constants.in_place();
  p.layout.memory.copied = constants.copied();
  if (kernels.pool != nullptr) {
    p.layout.memory.host_scratch =
        host_scratch_bytes(p.graph, p.layout, *kernels.pool, kernels.precision);
  }
  need.host += p.layout.memory.host;
  need.host_scratch = std::max(need.host_scratch, p.layout.memory.host_scratch);
  session->infos.push_back(describe_method(p.graph, p.layout));
  session->infos.back().note = p.note;
  return {};
}

// Threads are started where some node runs on the CPU.
void SessionLoad::Impl::set_pool(const Layout& layout) {
  const bool on_cpu = std::ranges::find(layout.place, Place::kCpu) != layout.place.end();
  if (!on_cpu || options.testing.reference || kernels.pool != nullptr) return;
  kernels.pool = cpu::shared_pool(options.threads);
  session->threads = kernels.pool->threads();
}

Status SessionLoad::Impl::add_states(Planned& p) {
  const auto is_shared = [](const graph::Value& v) {
    const auto* t = std::get_if<graph::Tensor>(&v);
    return t != nullptr && t->shared;
  };
  const bool shared = std::any_of(p.graph.values.begin(), p.graph.values.end(), is_shared);
  p.states = shared ? shared_states : nullptr;
  if (p.states == nullptr) p.states = &session->states.emplace_back();
  if (shared) shared_states = p.states;
  PTERYX_ASSIGN(p.state_roots, p.states->add(p.graph, p.layout));
  return {};
}

Status SessionLoad::Impl::check_memory() {
  for (const exec::StateGroup& group : session->states) {
    need.activations -= group.shared_bytes();
    need.host -= group.shared_host_bytes();
  }
  HostConstants constants = host_constants();
  for (const Planned& p : planned) constants.add(p.graph, p.layout);
  need.in_place = constants.in_place();
  need.copied = constants.copied();
  session->memory = {.gpu = need.gpu_total(),
                     .host = need.host,
                     .scratch = need.host_scratch,
                     .copied = need.copied,
                     .in_place = need.in_place};
  if (options.memory_limit == 0) return {};
  if (!session->device->caps().cpu) {
    if (need.gpu_total() <= options.memory_limit) return {};
    return memory_error(fmt::format("{} needs {} bytes of GPU memory, the limit is {}", name,
                                    need.gpu_total(), options.memory_limit));
  }
  uint64_t locked = 0;
  for (const SourcePtr& source : session->program.sources()) locked += source->size();
  if (!options.lock) locked = 0;
  if (need.host_total() + locked <= options.memory_limit) return {};
  return memory_error(fmt::format(
      "{} needs {} bytes of memory, the limit is {}: {} for activations and state, {} for "
      "temporaries, {} for weights in another form, {} for locked files",
      name, need.host_total() + locked, options.memory_limit, need.host, need.host_scratch,
      need.copied, locked));
}

Status SessionLoad::Impl::make_methods() {
  PTERYX_TRY(check_memory());
  expect_weights(need.host_total());
  if (!kernels.memory->reserve(need.host_scratch)) {
    return memory_error(fmt::format("loading {}: no memory left for {} bytes of temporaries", name,
                                    need.host_scratch));
  }
  session->constants = std::make_unique<exec::ConstantPool>(session->device, std::move(sources));
  session->constants->on_bytes([this](uint64_t bytes) {
    uploaded += bytes;
    return tell("uploading weights", uploaded, need.constants);
  });
  for (exec::StateGroup& group : session->states) group.begin(*session->constants);
  for (Planned& p : planned) {
    session->methods.push_back(std::make_unique<exec::Method>(
        std::move(p.graph), std::move(p.layout),
        exec::Method::States{*p.states, std::move(p.state_roots)}, context, *session->constants,
        options.testing.plan_cache, kernels));
  }
  planned.clear();
  return {};
}

}  // namespace pteryx

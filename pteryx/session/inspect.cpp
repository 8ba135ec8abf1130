// Reports about programs. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/inspect.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/graph/build.h"
#include "pteryx/ops/schema.h"
#include "pteryx/ops/table.h"
#include "pteryx/program/program.h"
#include "pteryx/session/drawing.h"
#include "pteryx/session/half_scales.h"
#include "pteryx/session/host_constants.h"
#include "pteryx/session/host_scratch.h"

namespace pteryx {
namespace {

using graph::Graph;
using graph::ValueId;

// A middling GPU: what WebGPU promises everywhere, with room for real weights.
gpu::Caps planning_caps() {
  gpu::Caps caps;
  caps.max_buffer_bytes = uint64_t{4} << 30;
  caps.max_binding_bytes = uint64_t{2} << 30;
  return caps;
}

Value literal(const graph::Value& v) {
  if (const auto* i = std::get_if<int64_t>(&v)) return *i;
  if (const auto* d = std::get_if<double>(&v)) return *d;
  if (const auto* b = std::get_if<bool>(&v)) return *b;
  if (const auto* s = std::get_if<std::string>(&v)) return *s;
  if (const auto* t = std::get_if<graph::Tensor>(&v); t != nullptr && t->has_data()) {
    return TensorView{.dtype = t->dtype, .dims = t->max};
  }
  return {};
}

ValueInfo describe_value(const Graph& g, ValueId id) {
  const graph::Value& v = g[id];
  ValueInfo info;
  if (const auto* t = g.tensor(id)) {
    info.kind = t->unsupported.empty() ? "tensor" : t->unsupported;
    info.dtype = t->dtype;
    info.dims = t->max;
    info.dynamic = t->dynamic;
    return info;
  }
  if (const auto* live = std::get_if<graph::LiveScalar>(&v)) {
    info.kind = live->kind == graph::ScalarKind::kInt    ? "int"
                : live->kind == graph::ScalarKind::kBool ? "bool"
                                                         : "float";
    return info;
  }
  info.fixed = literal(v);
  info.kind = info.fixed.integer() != nullptr  ? "int"
              : info.fixed.number() != nullptr ? "float"
              : info.fixed.flag() != nullptr   ? "bool"
              : info.fixed.text() != nullptr   ? "string"
                                               : "none";
  return info;
}

}  // namespace

uint32_t OperatorUse::* count_of(const Graph& g, const graph::Node& n, const ops::OpDef* def,
                                 const ops::Live& bound, const gpu::Caps& caps) {
  if (def == nullptr || !ops::check_schema(g, n, *def).ok()) return &OperatorUse::unsupported;
  if (def->op_class != ops::OpClass::kCompute) return &OperatorUse::free;
  if (!caps.cpu && ops::runs_on_gpu(ops::Node(g, n, *def, bound))) return &OperatorUse::gpu;
  return def->cpu != nullptr ? &OperatorUse::cpu : &OperatorUse::unsupported;
}

namespace {

// Where each node would run, also in a graph that cannot run as a whole.
std::vector<OperatorUse> count_operators(const Graph& g, const gpu::Caps& caps) {
  const ops::Live bound = largest(g);
  std::map<std::string_view, OperatorUse> uses;
  for (const graph::Node& n : g.nodes) {
    if (n.kind != graph::Node::Kind::kOp) continue;
    const std::string_view name = n.op != nullptr ? n.op->name : n.spelling;
    OperatorUse& use = uses[name];
    use.name = name;
    ++use.count;
    const ops::OpDef* def = n.op == nullptr ? nullptr : &ops::op(*n.op);
    ++(use.*count_of(g, n, def, bound, caps));
  }
  std::vector<OperatorUse> list;
  list.reserve(uses.size());
  for (auto& [name, use] : uses) list.push_back(std::move(use));
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  return list;
}

Weight weight_of(const Graph& g, ValueId id) {
  const graph::Tensor& t = *g.tensor(id);
  return {std::string(g.label(id)), t.dtype, t.max,
          static_cast<uint64_t>(numel(t.max)) * size_bytes(t.dtype), t.state};
}

std::vector<Weight> list_weights(const Graph& g) {
  std::vector<Weight> weights;
  for (uint32_t i = 0; i < g.values.size(); ++i) {
    const auto* t = std::get_if<graph::Tensor>(&g.values[i]);
    if (t == nullptr || (!t->has_data() && !t->state)) continue;
    weights.push_back(weight_of(g, ValueId{i}));
  }
  std::stable_sort(weights.begin(), weights.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return weights;
}

// "softmax:serial" and so on; where there is no such family, the names of those with routes.
std::vector<std::string> routes_of(std::string_view family) {
  std::vector<std::string> routes;
  std::vector<std::string> families;
  const auto add = [](std::vector<std::string>& list, std::string name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(std::move(name));
  };
  for (const ops::OpDef& def : ops::all_ops()) {
    for (const ops::Route& r : def.routes) {
      add(families, fmt::format("{}:...", def.family));
      if (def.family == family) add(routes, fmt::format("{}:{}", def.family, r.name));
    }
  }
  return routes.empty() ? families : routes;
}

}  // namespace

Result<ops::PlanContext> make_context(const gpu::Caps& caps, const std::string& routes,
                                      Precision precision) {
  ops::PlanContext context{.caps = caps, .precision = precision};
  for (size_t at = 0; at < routes.size();) {
    const size_t end = std::min(routes.find(',', at), routes.size());
    const std::string item = routes.substr(at, end - at);
    at = end + 1;
    const size_t colon = std::min(item.find(':'), item.size());
    const std::vector<std::string> known = routes_of(item.substr(0, colon));
    if (std::find(known.begin(), known.end(), item) == known.end()) {
      return invalid_argument(fmt::format("there is no route '{}': expected {}{}", excerpt(item),
                                          known.size() > 1 ? "one of " : "",
                                          fmt::join(known, ", ")));
    }
    context.forced_routes.emplace_back(item.substr(0, colon), item.substr(colon + 1));
  }
  return context;
}

Precision usual_precision(const Graph& g) {
  return fuse::is_language_model(g) ? Precision::kF16 : Precision::kF32;
}

MethodInfo describe_method(const Graph& g, const Layout& layout) {
  MethodInfo info;
  info.name = g.method;
  for (const ValueId id : g.inputs) info.inputs.push_back(describe_value(g, id));
  for (const Layout::IndexLimit& limit : layout.index_limits) {
    std::optional<int64_t>& bound = info.inputs[limit.input].index_bound;
    if (limit.extent) bound = std::min(bound.value_or(*limit.extent), *limit.extent);
  }
  for (const ValueId id : g.outputs) {
    info.outputs.push_back(describe_value(g, id));
    info.outputs.back().dynamic = !layout.is_static;
  }
  info.gpu_bytes = layout.memory.gpu_total();
  info.host_bytes = layout.memory.host;
  info.in_place_bytes = layout.memory.in_place;
  info.copied_bytes = layout.memory.copied;
  info.state_bytes = layout.memory.state;
  return info;
}

namespace {

// Of a method on a machine without a GPU; what cannot run there has none.
MemoryNeed cpu_memory(const program::Program& program, const program::MethodRecord& record,
                      cpu::Pool& pool, Precision precision) {
  const program::MethodRecord* const one = &record;
  auto graphs = graph::build_graphs(program, std::span(&one, 1), ops::lookup());
  if (!graphs.front().ok()) return {};
  Graph& g = *graphs.front();
  fuse::run_passes(g, ops::lookup(), {.precision = Precision::kF32});
  HalfScales scales(program.sources(), HalfScales::Kept::kInMemory);
  if (precision == Precision::kF16) {
    fuse::set_cache_type(g, DType::kF16);
    scales.convert(g);
  }
  gpu::Caps caps = planning_caps();
  caps.cpu = true;
  auto layout = make_layout(g, {.caps = caps, .precision = precision});
  if (!layout.ok()) return {};
  HostConstants constants(scales.sources(), program.sources().size(), {&pool, precision});
  constants.add(g, *layout);
  layout->memory.in_place = constants.in_place();
  layout->memory.copied = constants.copied();
  layout->memory.host_scratch = host_scratch_bytes(g, *layout, pool, precision);
  return layout->memory;
}

}  // namespace

Result<ProgramReport> inspect(const program::Program& program, const std::string& path,
                              const InspectOptions& options) {
  PTERYX_ASSIGN(ops::PlanContext context,
                make_context(options.limits.value_or(planning_caps()), options.routes,
                             options.precision.value_or(Precision::kF32)));
  HalfScales scales(program.sources());
  ProgramReport report{path, program.file_bytes(), program.named_data().size(), {}};
  const std::shared_ptr<cpu::Pool> pool = cpu::shared_pool(0);  // as a session by default
  std::vector<const program::MethodRecord*> records;
  for (const program::MethodRecord& record : program.methods()) records.push_back(&record);
  for (auto& graph : graph::build_graphs(program, records, ops::lookup())) {
    const program::MethodRecord& record = *records[report.methods.size()];
    MethodReport m;
    m.info.name = record.name;
    m.delegates = record.delegates.size();
    if (!graph.ok()) {
      if (graph.status().code() != Code::kUnsupported) {
        return std::move(graph).status().during(
            fmt::format("reading method '{}' of {}", record.name, path));
      }
      m.problem = graph.status().message();
      report.methods.push_back(std::move(m));
      continue;
    }
    m.weights = list_weights(*graph);  // as the file has them
    context.precision = options.precision.value_or(usual_precision(*graph));
    fuse::PassOptions passes{.precision = context.precision};
    if (options.limits) passes.most_constant_bytes = most_constant_bytes(*options.limits);
    for (const fuse::SplitWeight& s : fuse::run_passes(*graph, ops::lookup(), passes))
      m.splits.push_back({weight_of(*graph, s.weight), s.parts});
    if (context.precision == Precision::kF16) {
      fuse::set_cache_type(*graph, DType::kF16);
      scales.convert(*graph);
    }
    m.nodes = graph->nodes.size();
    m.operators = count_operators(*graph, context.caps);
    m.metadata = record.instructions.empty() && record.inputs.empty();
    if (options.dot) m.dot = to_dot(*graph);
    if (options.drawing) m.drawing = draw(*graph, context.caps);
    auto layout = make_layout(*graph, context);
    if (layout.ok()) {
      m.info = describe_method(*graph, *layout);
      m.memory = layout->memory;
      m.cpu_memory = cpu_memory(program, record, *pool, context.precision);
      if (options.limits) m.excess = find_excess(*graph, *layout, *options.limits);
    } else {
      m.info = describe_method(*graph, Layout{});
      m.problem = layout.status().message();
    }
    if (m.metadata) {
      for (const ValueId id : graph->outputs) m.constants.push_back(literal((*graph)[id]));
    }
    report.methods.push_back(std::move(m));
  }
  return report;
}

}  // namespace pteryx

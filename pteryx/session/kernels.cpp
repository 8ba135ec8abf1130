// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/kernels.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <span>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/graph/build.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"
#include "pteryx/program/program.h"
#include "pteryx/session/half_scales.h"
#include "pteryx/session/inspect.h"
#include "pteryx/session/layout.h"
#include "pteryx/session/limits.h"

namespace pteryx {
namespace {

using graph::index;
using graph::ValueId;
using ops::PlannedBinding;
using ops::PlannedDispatch;

// Inputs of a language model.
constexpr size_t kTokens = 0;
constexpr size_t kPosition = 1;

// Sizes that a method is planned at.
struct Sizes {
  std::string text;
  int64_t tokens = 0;
  int64_t position = 0;
};

class Lister {
 public:
  Lister(const graph::Graph& g, const Layout& layout, const ops::PlanContext& context,
         std::vector<KernelText>& kernels)
      : g_(g), layout_(layout), context_(context), kernels_(kernels) {}

  void add_at_bound() {
    for (uint32_t i = 0; i < layout_.plans.size(); ++i) {
      if (layout_.plans[i]) add(i, *layout_.plans[i], layout_.bound, "at the bound");
    }
  }

  // Shapes and plans as a run of that many tokens at that position makes them.
  Status add_at(const Sizes& sizes) {
    ops::Live live = layout_.bound;
    live.dims[index(g_.inputs[kTokens])][1] = sizes.tokens;
    Dims& positions = live.dims[index(g_.inputs[kPosition])];
    if (numel(positions) > 1) positions = {sizes.tokens};
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      const ops::OpDef& def = *layout_.defs[i];
      const ops::Node n(g_, g_.nodes[i], def, live);
      if (layout_.place[i] == Place::kItem) {
        PTERYX_TRY(read_position(i, n, live, sizes.position));
        continue;
      }
      ops::Shapes shapes(n, live);
      PTERYX_TRY(def.shape(n, shapes));
    }
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (layout_.place[i] != Place::kGpu) continue;
      ops::Plan plan(context_, fault_slot(layout_, i));
      PTERYX_TRY(layout_.defs[i]->plan(ops::Node(g_, g_.nodes[i], *layout_.defs[i], live), plan));
      const NodePlan made{std::move(plan.dispatches),
                          std::move(plan.constants),
                          std::move(plan.scratch_bytes),
                          {},
                          {},
                          std::move(plan.feeding)};
      add(i, made, live, sizes.text);
    }
    return {};
  }

 private:
  Status read_position(uint32_t node, const ops::Node& n, ops::Live& live, int64_t position) const {
    const ValueId source = layout_.roots[layout_.item_source[node]].value;
    if (source != g_.inputs[kPosition]) return {};  // as at the bound
    const DType dtype = g_.tensor(source)->dtype;
    const Dims dims = live.dims[index(source)];
    std::vector<std::byte> bytes(static_cast<size_t>(numel(dims)) * size_bytes(dtype));
    const ops::HostTensor x{dtype, dims, bytes.data()};
    for (int64_t i = 0; i < x.numel(); ++i) x.put_integer(i, position + i);
    ops::Shapes shapes(n, live);
    return layout_.defs[node]->item(n, x, shapes);
  }

  void add(uint32_t node, const NodePlan& plan, const ops::Live& live, const std::string& sizes) {
    for (const ops::PlannedConstant& c : plan.constants) {
      KernelUse use = use_of(node, c.make, plan, live, "at load");
      use.purpose = fmt::format("makes {} of {}", c.layout, excerpt(g_.label(c.source)));
      keep(c.make, std::move(use));
    }
    for (const PlannedDispatch& d : plan.dispatches) keep(d, use_of(node, d, plan, live, sizes));
    if (!plan.feeding) return;
    KernelUse use = use_of(node, *plan.feeding, plan, live, sizes);
    use.purpose = "moves the token that was drawn to the next step as well";
    keep(*plan.feeding, std::move(use));
  }

  KernelUse use_of(uint32_t node, const PlannedDispatch& d, const NodePlan& plan,
                   const ops::Live& live, std::string sizes) const {
    KernelUse use{.method = excerpt(g_.method),
                  .sizes = std::move(sizes),
                  .op = std::string(layout_.defs[node]->name),
                  .purpose = {},
                  .binds = {fmt::format("params, {} bytes", d.params.size())},
                  .grid = d.grid,
                  .nodes = {node}};
    for (const PlannedBinding& b : d.bindings)
      use.binds.push_back(
          fmt::format("{}{}", text_of(b, plan, live), b.written ? ", written" : ""));
    return use;
  }

  std::string text_of(const PlannedBinding& b, const NodePlan& plan, const ops::Live& live) const {
    switch (b.kind) {
      case PlannedBinding::Kind::kScratch:
        return fmt::format("a temporary, {} bytes", plan.scratch_bytes[b.scratch]);
      case PlannedBinding::Kind::kConstant:
        return fmt::format("a constant as {}, {} bytes", plan.constants[b.constant].layout,
                           plan.constants[b.constant].size_bytes);
      case PlannedBinding::Kind::kScalars: return "live scalars";
      case PlannedBinding::Kind::kStaging: return "live scalars and small inputs";
      case PlannedBinding::Kind::kRule: return "how live scalars move";
      case PlannedBinding::Kind::kFaults: return "reports of indices outside their tensor";
      case PlannedBinding::Kind::kCounted: return "counters, and a temporary behind them";
      case PlannedBinding::Kind::kValue: break;
    }
    return fmt::format("{} {}", name(g_.tensor(b.value)->dtype),
                       to_string(live.dims[index(b.value)]));
  }

  void keep(const PlannedDispatch& d, KernelUse use) {
    auto kernel = std::ranges::find_if(kernels_, [&](const KernelText& k) {
      return k.code == d.code && k.f16 == d.f16 && k.subgroups == d.subgroups &&
             k.subgroup_matrix == d.subgroup_matrix;
    });
    if (kernel == kernels_.end()) {
      kernels_.push_back({.label = d.label,
                          .code = d.code,
                          .f16 = d.f16,
                          .subgroups = d.subgroups,
                          .subgroup_matrix = d.subgroup_matrix,
                          .uses = {}});
      kernel = kernels_.end() - 1;
    }
    const auto same = std::ranges::find_if(kernel->uses, [&](const KernelUse& u) {
      return u.method == use.method && u.sizes == use.sizes && u.op == use.op &&
             u.purpose == use.purpose && u.binds == use.binds && u.grid == use.grid;
    });
    if (same == kernel->uses.end()) {
      kernel->uses.push_back(std::move(use));
    } else if (!use.nodes.empty() && same->nodes.back() != use.nodes.front()) {
      same->nodes.push_back(use.nodes.front());
    }
  }

  const graph::Graph& g_;
  const Layout& layout_;
  const ops::PlanContext& context_;
  std::vector<KernelText>& kernels_;
};

std::vector<Sizes> sizes_of(const graph::Graph& g, int64_t capacity) {
  const int64_t most = g.tensor(g.inputs[kTokens])->max[1];
  std::vector<Sizes> all = {{"1 token at position 0", 1, 0}};
  if (capacity > 1)
    all.push_back({fmt::format("1 token at position {}", capacity - 1), 1, capacity - 1});
  if (most > 1) all.push_back({fmt::format("{} tokens at position 0", most), most, 0});
  if (!g.tensor(g.inputs[kTokens])->dynamic && most > 1) all.erase(all.begin(), all.end() - 1);
  return all;
}

std::string safe_name(std::string_view label) {
  constexpr size_t kLongest = 100;
  std::string out;
  for (const char c : label.substr(0, kLongest)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += plain ? c : c == '/' ? '-' : '_';
  }
  return out;
}

std::string nodes_text(std::span<const uint32_t> nodes) {
  if (nodes.empty()) return "";
  return fmt::format(", node{} {}", nodes.size() == 1 ? "" : "s", fmt::join(nodes, ", "));
}

Status list_method(graph::Graph& g, const KernelOptions& options, HalfScales& scales,
                   std::vector<KernelText>& kernels) {
  const Precision precision = options.precision.value_or(usual_precision(g));
  fuse::run_passes(
      g, ops::lookup(),
      {.most_constant_bytes = most_constant_bytes(options.caps), .precision = precision});
  if (precision == Precision::kF16) {
    fuse::set_cache_type(g, DType::kF16);
    scales.convert(g);
  }
  const bool draws = fuse::append_sampling(g, ops::lookup());
  PTERYX_ASSIGN(const ops::PlanContext context,
                make_context(options.caps, options.routes, precision));
  PTERYX_ASSIGN(const Layout layout, make_layout(g, context));
  Lister lister(g, layout, context, kernels);
  if (!draws) {
    lister.add_at_bound();
    return {};
  }
  for (const Sizes& sizes : sizes_of(g, fuse::token_history(g)->max[0])) {
    Status s = lister.add_at(sizes);
    if (!s.ok()) return std::move(s).during(fmt::format("planning {}", sizes.text));
  }
  return {};
}

}  // namespace

Result<std::vector<KernelText>> list_kernels(const std::string& path,
                                             const KernelOptions& options) {
  PTERYX_ASSIGN(const program::Program program, program::Program::open(path, options.data_files));
  std::vector<const program::MethodRecord*> records;
  for (const program::MethodRecord& record : program.methods()) records.push_back(&record);
  std::vector<KernelText> kernels;
  size_t at = 0;
  HalfScales scales(program.sources());
  for (auto& graph : graph::build_graphs(program, records, ops::lookup())) {
    Status s = graph.ok() ? list_method(*graph, options, scales, kernels)
                          : Status(std::move(graph).status());
    const std::string& method = records[at++]->name;
    if (!s.ok())
      return std::move(s).during(fmt::format("planning method '{}' of {}", method, path));
  }
  return kernels;
}

std::string kernel_file(const KernelText& kernel) {
  std::string text = fmt::format("{}\n// {}\n", kKernelFileMark, kernel.label);
  for (const KernelUse& u : kernel.uses) {
    text += fmt::format("//\n// {}, {}: {}{}\n", u.method, u.sizes, u.op, nodes_text(u.nodes));
    if (!u.purpose.empty()) text += fmt::format("//   {}\n", u.purpose);
    text += fmt::format("//   {} x {} x {} workgroups, {} in all\n", u.grid.x, u.grid.y, u.grid.z,
                        uint64_t{u.grid.x} * u.grid.y * u.grid.z);
    for (size_t i = 0; i < u.binds.size(); ++i)
      text += fmt::format("//   binding {}: {}\n", i, u.binds[i]);
  }
  text += '\n';
  if (kernel.f16) text += "enable f16;\n";
  if (kernel.subgroups) text += "enable subgroups;\n";
  if (kernel.subgroup_matrix) {
    text +=
        "enable chromium_experimental_subgroup_matrix;\n"
        "diagnostic(off, chromium.subgroup_matrix_uniformity);\n";
  }
  text += kernel.code;
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

std::vector<std::string> kernel_file_names(const std::vector<KernelText>& kernels) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const KernelText& k : kernels) {
    const std::string base = safe_name(k.label);
    std::string name = base;
    for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}-{}", base, i);
    names.push_back(name + ".wgsl");
  }
  return names;
}

}  // namespace pteryx

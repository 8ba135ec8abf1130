// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/limits.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "pteryx/ops/bind.h"

namespace pteryx {
namespace {

constexpr std::string_view kWeights =
    "export or convert it with fewer bits; only tables of embeddings and matrices of linear layers "
    "are split";
constexpr std::string_view kState =
    "export or convert it with a shorter context, or with an f16 KV cache where it is one of f32";
constexpr std::string_view kSizes =
    "export or convert it with smaller upper bounds, such as fewer tokens a call";

class Finder {
 public:
  explicit Finder(const gpu::Caps& caps) : caps_(caps) {}

  void buffer(std::string what, uint64_t bytes, std::string_view remedy) {
    if (bytes > caps_.max_buffer_bytes)
      add({std::move(what), bytes, "max_buffer_bytes", caps_.max_buffer_bytes, remedy});
  }
  // One that shaders see as a whole.
  void bound(std::string what, uint64_t bytes, std::string_view remedy) {
    if (bytes > std::min(caps_.max_buffer_bytes, caps_.max_binding_bytes)) {
      const bool made = bytes <= caps_.max_buffer_bytes;
      add({std::move(what), bytes, made ? "max_binding_bytes" : "max_buffer_bytes",
           made ? caps_.max_binding_bytes : caps_.max_buffer_bytes, remedy});
    }
  }

  void tensor(const graph::Graph& g, const Root& r) {
    const graph::Tensor& t = *g.tensor(r.value);
    const std::string_view kind = r.constant ? "weight " : r.state ? "state " : "";
    if (r.gpu_bytes <= std::min(caps_.max_buffer_bytes, caps_.max_binding_bytes)) return;
    bound(fmt::format("{}{}, {} {}", kind, g.label(r.value), name(t.dtype), to_string(t.max)),
          r.gpu_bytes,
          r.constant ? kWeights
          : r.state  ? kState
                     : kSizes);
  }

  void plan(const graph::Graph& g, const graph::Node& n, const NodePlan& plan) {
    uint64_t scratch = plan.counted_bytes;
    for (const uint64_t bytes : plan.scratch_bytes) scratch = std::max(scratch, bytes);
    bound(fmt::format("a temporary of {}", describe(g, n)), scratch, kSizes);
    for (const ops::PlannedConstant& c : plan.constants)
      bound(fmt::format("weight {}, {}", g.label(c.source), c.layout), c.size_bytes, kWeights);
    for (const ops::PlannedDispatch& d : plan.dispatches) dispatch(g, n, d);
    if (plan.feeding) dispatch(g, n, *plan.feeding);
  }

  std::vector<Excess> take() { return std::move(found_); }

 private:
  void dispatch(const graph::Graph& g, const graph::Node& n, const ops::PlannedDispatch& d) {
    if (d.bindings.size() <= caps_.max_storage_buffers) return;
    add({fmt::format("shader '{}' of {}", d.label, describe(g, n)), d.bindings.size(),
         "max_storage_buffers", caps_.max_storage_buffers, ""});
  }
  // Several nodes may read a weight in the same layout.
  void add(Excess e) {
    if (std::ranges::find(found_, e.what, &Excess::what) == found_.end())
      found_.push_back(std::move(e));
  }

  const gpu::Caps& caps_;
  std::vector<Excess> found_;
};

constexpr size_t kMostNamed = 20;  // of a model whose layers are all too large

Status all_of(const std::vector<Excess>& found) {
  if (found.empty()) return {};
  std::string text = to_string(found.front());
  for (size_t i = 1; i < std::min(found.size(), kMostNamed); ++i)
    text += "\n" + to_string(found[i]);
  if (found.size() > kMostNamed) text += fmt::format("\nand {} more", found.size() - kMostNamed);
  return unsupported(std::move(text));
}

}  // namespace

uint64_t most_constant_bytes(const gpu::Caps& caps) {
  return std::min({caps.max_buffer_bytes, caps.max_binding_bytes, caps.max_weight_bytes});
}

std::string to_string(const Excess& e) {
  return fmt::format("{}: {} {}, {} of the device is {}{}{}", e.what, e.amount,
                     e.limit == "max_storage_buffers" ? "buffers" : "bytes", e.limit, e.allowed,
                     e.remedy.empty() ? "" : "; ", e.remedy);
}

std::vector<Excess> find_excess(const graph::Graph& g, const Layout& layout,
                                const gpu::Caps& caps) {
  Finder f(caps);
  for (const Root& r : layout.roots) {
    if (r.gpu) f.tensor(g, r);
  }
  uint64_t params = 0;
  for (size_t i = 0; i < layout.plans.size(); ++i) {
    if (!layout.plans[i]) continue;
    f.plan(g, g.nodes[i], *layout.plans[i]);
    for (const ops::PlannedDispatch& d : layout.plans[i]->dispatches)
      params += align_up(ops::params_bytes(d), caps.uniform_alignment);
  }
  f.buffer("parameters of shaders", params, "");
  f.buffer("scalars and small inputs", layout.inbox_bytes, "");
  f.buffer("results that are read back", layout.readback_bytes, kSizes);
  return f.take();
}

Status check_limits(const graph::Graph& g, const Layout& layout, const gpu::Caps& caps) {
  return all_of(find_excess(g, layout, caps));
}

Status check_plan(const graph::Graph& g, const graph::Node& n, const NodePlan& plan,
                  const gpu::Caps& caps) {
  Finder f(caps);
  f.plan(g, n, plan);
  return all_of(f.take());
}

}  // namespace pteryx

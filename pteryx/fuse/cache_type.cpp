// KV caches of another element type than the file's. SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

// What a value is there for.
struct Use {
  bool cache = false;        // an argument that takes KV caches
  bool written = false;      // one that is written
  bool outside = false;      // the caller's
  uint32_t other = kNoNode;  // a node that uses it otherwise
};

std::vector<Use> find_uses(const Graph& g) {
  std::vector<Use> uses(g.values.size());
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    for (size_t a = 0; a < n.args.size(); ++a) {
      const bool cache = n.op != nullptr && n.op->takes_cache(a);
      const bool written = n.op != nullptr && n.op->mutates(a);
      for_each_value(g, n.args[a], [&](ValueId id) {
        Use& u = uses[index(id)];
        u.cache = u.cache || cache;
        u.written = u.written || (cache && written);
        if (!cache && u.other == kNoNode) u.other = i;
      });
    }
  }
  for (const auto* ids : {&g.inputs, &g.outputs}) {
    for (const ValueId id : *ids) uses[index(id)].outside = true;
  }
  return uses;
}

// GPU kernels write no word that two batches share.
bool shares_words(const Tensor& t, DType type) {
  if (t.max.rank() == 0 || t.max[0] <= 1) return false;
  return static_cast<uint64_t>(numel(t.max) / t.max[0]) * size_bytes(type) % 4 != 0;
}

// Why a KV cache stays as it is; "" where nothing stands against another type.
std::string obstacle(const Graph& g, const Tensor& t, const Use& u, DType type) {
  if (u.outside) return "is an input or output of the method";
  if (!t.state) return "does not persist between runs";
  if (u.other != kNoNode) return "is also used by " + describe(g, g.nodes[u.other]);
  if (shares_words(t, type)) return "has batches that would share words";
  return "";
}

std::string sentence(const Graph& g, ValueId id, std::string_view predicate) {
  const Tensor& t = *g.tensor(id);
  return fmt::format("{} ({} {}) {}", g.label(id), name(t.dtype), to_string(t.max), predicate);
}

// The largest float state that nodes use; kNoValue where there is none.
ValueId largest_state(const Graph& g, const std::vector<Use>& uses) {
  ValueId found = kNoValue;
  int64_t largest = 0;
  for (uint32_t v = 0; v < g.values.size(); ++v) {
    const auto* t = std::get_if<Tensor>(&g.values[v]);
    if (t == nullptr || !t->state || !is_float(t->dtype) || numel(t->max) <= largest) continue;
    if (uses[v].other == kNoNode) continue;
    largest = numel(t->max);
    found = ValueId{v};
  }
  return found;
}

// A graph without KV caches: other operators may hold rows in state of theirs.
CacheTypes without_caches(const Graph& g, const std::vector<Use>& uses, DType type) {
  const ValueId id = largest_state(g, uses);
  if (id == kNoValue) return {};
  if (g.tensor(id)->dtype == type) return {.of_type = 1, .others = 0, .why = {}};
  const Node& user = g.nodes[uses[index(id)].other];
  return {.of_type = 0,
          .others = 0,
          .why = sentence(
              g, id, fmt::format("is used by {}, which takes no KV cache", describe(g, user)))};
}

}  // namespace

void find_fixed_caches(const Graph& g, DType type, std::set<SharedPlace>& fixed) {
  const std::vector<Use> uses = find_uses(g);
  for (uint32_t v = 0; v < g.values.size(); ++v) {
    const auto* t = std::get_if<Tensor>(&g.values[v]);
    if (t == nullptr || !t->shared || t->dtype == type) continue;
    if (!uses[v].cache || !obstacle(g, *t, uses[v], type).empty()) fixed.insert(*t->shared);
  }
}

CacheTypes set_cache_type(Graph& g, DType type, const std::set<SharedPlace>& fixed) {
  const std::vector<Use> uses = find_uses(g);
  CacheTypes result;
  for (uint32_t v = 0; v < g.values.size(); ++v) {
    auto* t = std::get_if<Tensor>(&g.values[v]);
    // Arguments that are read only take what is no cache as well: keys and values of a call.
    if (t == nullptr || !uses[v].cache || !is_float(t->dtype) || !(t->state || uses[v].written))
      continue;
    if (t->dtype == type) {
      ++result.of_type;
      continue;
    }
    std::string problem = obstacle(g, *t, uses[v], type);
    if (problem.empty() && t->shared && fixed.contains(*t->shared))
      problem = "is shared with a method where it cannot change";
    if (!problem.empty()) {
      ++result.others;
      if (result.why.empty()) result.why = sentence(g, ValueId{v}, problem);
      continue;
    }
    if (t->has_data() && !t->stored) t->stored = t->dtype;
    t->dtype = type;
    ++result.of_type;
  }
  return result.of_type + result.others > 0 ? result : without_caches(g, uses, type);
}

}  // namespace pteryx::fuse

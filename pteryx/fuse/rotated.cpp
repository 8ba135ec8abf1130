// Queries, keys and values: the product that makes them, the norms of heads of the first two, their
// rotation and the update of the caches become one node, before attention that finds them in the
// caches.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>

#include "pteryx/fuse/calls.h"
#include "pteryx/fuse/match.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/products.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

namespace {

constexpr std::string_view kAttention = "sdpa_with_kv_cache.default";
constexpr std::string_view kCached = "llama.custom_sdpa.default";
constexpr std::string_view kNorm = "et_vk.rms_norm.default";
constexpr std::string_view kNeighbours = "et_vk.apply_rotary_emb.default";
constexpr std::string_view kHalves = "et_vk.apply_rotary_emb_hf.default";
constexpr std::string_view kSlice = "aten.slice_copy.Tensor";

// Rows of a table: all, or from a place on.
struct Rows {
  ValueId table = kNoValue;
  ValueId start = kNoValue;
};
bool is_int(const Graph& g, ValueId id, int64_t v) {
  const auto* i = id == kNoValue ? nullptr : std::get_if<int64_t>(&g[id]);
  return i != nullptr && *i == v;
}
Rows rows_of(const Matcher& p, ValueId id) {
  const uint32_t maker = p.uses.made_by(id, kSlice);
  if (maker == kNoNode) return {.table = id};
  const Node& slice = p.g.nodes[maker];
  const Tensor* table = p.g.tensor(argument(slice, "x"));
  const ValueId step = argument(slice, "step");
  const bool whole_rows = table != nullptr && table->is_constant() &&
                          is_int(p.g, argument(slice, "dim"), 0) &&
                          (p.is_none(step) || is_int(p.g, step, 1));
  if (!whole_rows) return {.table = id};
  const ValueId start = argument(slice, "start");
  return {.table = argument(slice, "x"), .start = p.is_none(start) ? kNoValue : start};
}

// Queries or keys before they are turned: the result of a product, and the norm of its heads.
struct Heads {
  ValueId from = kNoValue;
  uint32_t norm = kNoNode;
};
Heads heads_before(const Matcher& p, ValueId turned) {
  const ValueId id = p.before_views(turned);
  const uint32_t norm = p.uses.made_by(id, kNorm);
  if (norm == kNoNode || p.uses.reads(id) != 1) return {.from = id};
  return {.from = p.before_views(argument(p.g.nodes[norm], "x")), .norm = norm};
}

struct Found {
  const ProductOps* kind = nullptr;
  uint32_t product = kNoNode;
  uint32_t rope = kNoNode;
  bool halves = false;
  ValueId q = kNoValue;  // turned
  Heads before_q, before_k;
  Rows cos, sin;

  bool normed() const { return before_q.norm != kNoNode; }
};

// Both norms or none, with the same eps.
bool find_norms(const Matcher& p, const Found& f) {
  if (f.before_q.norm == kNoNode || f.before_k.norm == kNoNode)
    return f.before_q.norm == f.before_k.norm;
  const ValueId eps = argument(p.g.nodes[f.before_q.norm], "eps");
  const auto* a = std::get_if<double>(&p.g[eps]);
  const auto* b = std::get_if<double>(&p.g[argument(p.g.nodes[f.before_k.norm], "eps")]);
  return a != nullptr && b != nullptr && *a == *b;
}

// The tables: whole with a position, or slices of them.
void find_tables(const Matcher& p, const Node& rope, Found& f) {
  if (f.halves) {
    const ValueId start = argument(rope, "start_pos");
    f.cos = {.table = argument(rope, "freqs_cos"), .start = start};
    f.sin = {.table = argument(rope, "freqs_sin"), .start = start};
    return;
  }
  f.cos = rows_of(p, argument(rope, "freqs_cos"));
  f.sin = rows_of(p, argument(rope, "freqs_sin"));
  if (f.cos.start == f.sin.start) return;
  f.cos = {.table = argument(rope, "freqs_cos")};  // slices of their own: as they are
  f.sin = {.table = argument(rope, "freqs_sin")};
}

std::optional<Found> find(const Matcher& p, const Node& attention) {
  const Graph& g = p.g;
  const ValueId q = argument(attention, "q");
  const ValueId k = argument(attention, "k");
  const ValueId v = argument(attention, "v");
  Found f{.q = q};
  f.rope = p.uses.made_by(q, kNeighbours);
  if (f.rope == kNoNode) f.rope = p.uses.made_by(q, kHalves);
  if (f.rope == kNoNode || f.rope != p.uses.producer(k)) return std::nullopt;
  const Node& rope = g.nodes[f.rope];
  f.halves = is_call(rope, kHalves);
  const auto* turned = std::get_if<ValueList>(&g[argument(rope, "y")]);
  if (turned == nullptr || turned->items != std::vector{q, k}) return std::nullopt;
  f.before_q = heads_before(p, argument(rope, "xq"));
  f.before_k = heads_before(p, argument(rope, "xk"));
  if (!find_norms(p, f)) return std::nullopt;
  const ValueId inputs[] = {f.before_q.from, f.before_k.from, p.before_views(v)};
  f.product = p.uses.producer(inputs[0]);
  if (f.product == kNoNode) return std::nullopt;
  const Node& product = g.nodes[f.product];
  f.kind = product_of(product);
  if (f.kind == nullptr) return std::nullopt;
  const auto* made = std::get_if<ValueList>(&g[argument(product, "y")]);
  if (made == nullptr || !std::ranges::equal(made->items, inputs)) return std::nullopt;
  for (const std::string_view slot : {"residual", "gated", "last"}) {
    if (!p.is_none(argument(product, slot))) return std::nullopt;
  }
  for (const ValueId id : {q, k, inputs[0], inputs[1], inputs[2]}) {
    if (p.uses.reads(id) != 1 || !p.uses.stable(id)) return std::nullopt;
  }
  find_tables(p, rope, f);
  return f;
}

// Whether sizes and types are such that the node can be.
bool fits(const Matcher& p, const Node& attention, const Found& f) {
  const Tensor* x = p.g.tensor(argument(p.g.nodes[f.product], "x"));
  const Tensor* q = p.g.tensor(f.q);
  const Tensor* keys = p.g.tensor(argument(attention, "k_cache"));
  const Tensor* values = p.g.tensor(argument(attention, "v_cache"));
  const Tensor* cos = p.g.tensor(f.cos.table);
  const Tensor* sin = p.g.tensor(f.sin.table);
  if (x == nullptr || q == nullptr || keys == nullptr || values == nullptr || cos == nullptr ||
      sin == nullptr)
    return false;
  const Tensor* weight = p.g.tensor(argument(p.g.nodes[f.product], "weight"));
  if (x->max.rank() != 3 || x->max[0] != 1 || q->max.rank() != 4 || keys->max.rank() != 4 ||
      keys->max != values->max || keys->dtype != values->dtype || keys->max[0] != 1 ||
      weight == nullptr)
    return false;
  const int64_t size = keys->max[3];
  const int64_t kv = keys->max[2] * size;
  for (const Heads& h : {f.before_q, f.before_k}) {
    if (h.norm == kNoNode) continue;
    const ValueId id = argument(p.g.nodes[h.norm], "weight");
    const Tensor* norm = p.g.tensor(id);
    if (norm == nullptr || norm->max != Dims{size} || !p.uses.stable(id)) return false;
  }
  return size > 0 && size % (f.halves ? 4 : 2) == 0 && q->max[3] == size && cos->max.rank() == 2 &&
         cos->max == sin->max && cos->max[1] == (f.halves ? size : size / 2) &&
         q->max[2] * size + 2 * kv == weight->max[0] && p.uses.stable(f.cos.table) &&
         p.uses.stable(f.sin.table);
}

}  // namespace

void rotate_products(Graph& g, const OpLookup& ops) {
  const Uses uses(g);
  std::vector<bool> gone(g.nodes.size());
  std::vector<std::optional<Node>> before(g.nodes.size());
  const Matcher p{g, uses, gone};
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    if (!is_call(g.nodes[i], kAttention)) continue;
    const Node attention = g.nodes[i];
    const auto f = find(p, attention);
    if (!f || !fits(p, attention, *f)) continue;
    const Node product = g.nodes[f->product];
    Node made = product;
    Node cached = attention;
    const auto of_product = [&](std::string_view name) {
      return Named{name, argument(product, name)};
    };
    const auto of_attention = [&](std::string_view name) {
      return Named{name, argument(attention, name)};
    };
    const auto of_norm = [&](std::string_view name, const Heads& h, std::string_view arg) {
      return Named{name, f->normed() ? argument(g.nodes[h.norm], arg) : kNoValue};
    };
    const bool known = set_call(g, made, ops, f->kind->rotated,
                                {of_product("x"),
                                 of_product("norm"),
                                 of_product("eps"),
                                 of_product("weight"),
                                 of_product("scales"),
                                 of_product("group_size"),
                                 of_product("minimums"),
                                 of_product("bias"),
                                 {"freqs_cos", f->cos.table},
                                 {"freqs_sin", f->sin.table},
                                 {"freqs_start", f->cos.start},
                                 {"halves", g.add(f->halves, "halves")},
                                 of_norm("q_norm", f->before_q, "weight"),
                                 of_norm("k_norm", f->before_k, "weight"),
                                 of_norm("head_eps", f->before_q, "eps"),
                                 of_attention("k_cache"),
                                 of_attention("v_cache"),
                                 of_attention("start_pos"),
                                 {"y", f->q}}) &&
                       set_call(g, cached, ops, kCached,
                                {{"q", f->q},
                                 of_attention("k_cache"),
                                 of_attention("v_cache"),
                                 of_attention("start_pos"),
                                 of_attention("attn_mask"),
                                 of_attention("dropout_p"),
                                 of_attention("is_causal"),
                                 of_attention("scale"),
                                 of_attention("y")});
    if (!known) continue;
    for (const std::string_view x : {"xq", "xk"}) p.drop_views(argument(g.nodes[f->rope], x));
    for (const Heads& h : {f->before_q, f->before_k}) {
      if (h.norm == kNoNode) continue;
      p.drop_views(argument(g.nodes[h.norm], "x"));
      gone[h.norm] = true;
    }
    p.drop_views(argument(attention, "v"));
    gone[f->product] = gone[f->rope] = true;
    g.nodes[i] = std::move(cached);
    before[i] = std::move(made);
  }
  std::vector<Node> nodes;
  nodes.reserve(g.nodes.size());
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    if (before[i]) nodes.push_back(*std::move(before[i]));
    if (!gone[i]) nodes.push_back(std::move(g.nodes[i]));
  }
  g.nodes = std::move(nodes);
  drop_unread(g, kSlice);
}

}  // namespace pteryx::fuse

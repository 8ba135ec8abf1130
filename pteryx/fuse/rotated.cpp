// Queries, keys and values: the product that makes them, the rotation of the first two and the
// update of the caches become one node, before attention that finds them in the caches.
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
constexpr std::string_view kRope = "et_vk.apply_rotary_emb.default";
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

struct Found {
  const ProductOps* kind = nullptr;
  uint32_t product = kNoNode;
  uint32_t rope = kNoNode;
  ValueId q = kNoValue;  // turned
  Rows cos, sin;
};

std::optional<Found> find(const Matcher& p, const Node& attention) {
  const Graph& g = p.g;
  const ValueId q = argument(attention, "q");
  const ValueId k = argument(attention, "k");
  const ValueId v = argument(attention, "v");
  Found f{.q = q};
  f.rope = p.uses.made_by(q, kRope);
  if (f.rope == kNoNode || f.rope != p.uses.made_by(k, kRope)) return std::nullopt;
  const Node& rope = g.nodes[f.rope];
  const auto* turned = std::get_if<ValueList>(&g[argument(rope, "y")]);
  if (turned == nullptr || turned->items != std::vector{q, k}) return std::nullopt;
  const ValueId inputs[] = {p.before_views(argument(rope, "xq")),
                            p.before_views(argument(rope, "xk")), p.before_views(v)};
  f.product = p.uses.producer(inputs[0]);
  if (f.product == kNoNode) return std::nullopt;
  const Node& product = g.nodes[f.product];
  const auto* kind = std::ranges::find_if(
      kProductOps, [&](const ProductOps& each) { return is_call(product, each.product); });
  if (kind == std::end(kProductOps)) return std::nullopt;
  f.kind = kind;
  const auto* made = std::get_if<ValueList>(&g[argument(product, "y")]);
  if (made == nullptr || !std::ranges::equal(made->items, inputs)) return std::nullopt;
  if (!p.is_none(argument(product, "residual")) || !p.is_none(argument(product, "gated")))
    return std::nullopt;
  for (const ValueId id : {q, k, inputs[0], inputs[1], inputs[2]}) {
    if (p.uses.reads(id) != 1 || !p.uses.stable(id)) return std::nullopt;
  }
  f.cos = rows_of(p, argument(rope, "freqs_cos"));
  f.sin = rows_of(p, argument(rope, "freqs_sin"));
  if (f.cos.start != f.sin.start) {  // slices of their own: as they are
    f.cos = {.table = argument(rope, "freqs_cos")};
    f.sin = {.table = argument(rope, "freqs_sin")};
  }
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
  return size > 0 && size % 2 == 0 && q->max[3] == size && cos->max.rank() == 2 &&
         cos->max == sin->max && cos->max[1] == size / 2 &&
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
    const bool known = set_call(g, made, ops, f->kind->rotated,
                                {of_product("x"),
                                 of_product("norm"),
                                 of_product("eps"),
                                 of_product("weight"),
                                 of_product("scales"),
                                 of_product("group_size"),
                                 of_product("bias"),
                                 {"freqs_cos", f->cos.table},
                                 {"freqs_sin", f->sin.table},
                                 {"freqs_start", f->cos.start},
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

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/work.h"

#include <algorithm>
#include <optional>

namespace pteryx::ops {
namespace {

double count(const Tensor& t) { return static_cast<double>(t.numel()); }

std::optional<size_t> find(const Node& n, std::string_view name) {
  const std::span<const Arg> args = n.def().args;
  const auto at = std::ranges::find(args, name, &Arg::name);
  if (at == args.end()) return {};
  return static_cast<size_t>(at - args.begin());
}

// The first argument of one of these names that is there.
std::optional<size_t> find(const Node& n, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const auto at = find(n, name); at && n.has(*at)) return at;
  }
  return {};
}

double results(const Node& n) {
  double elements = 0;
  for (size_t i = 0; i < n.out_count(); ++i) {
    if (n.has_out(i)) elements += count(n.out(i));
  }
  return elements;
}

double product_flops(const Node& n) {
  const auto x = find(n, {"x", "a", "mat1", "batch1"});
  return x ? 2 * results(n) * static_cast<double>(n.in(*x).dim(-1)) : 0;
}

// A quantised layer may gate its columns, or put some of them into caches.
double layer_flops(const Node& n) {
  const auto x = find(n, {"x"});
  const auto weight = find(n, {"weight"});
  return x && weight ? 2 * count(n.in(*x)) * static_cast<double>(n.in(*weight).dim(0)) : 0;
}

double convolution_flops(const Node& n) {
  const auto x = find(n, {"x"});
  const auto weight = find(n, {"weight"});
  const auto transposed = find(n, {"transposed"});
  if (!x || !weight) return 0;
  const Tensor w = n.in(*weight);
  const double each = count(w) / std::max(static_cast<double>(w.dim(0)), 1.0);
  return 2 * each * (transposed && n.flag(*transposed) ? count(n.in(*x)) : results(n));
}

// Rows of keys that a call looks at: up to the position and its own, or all.
double context_of(const Node& n, const Tensor& q, const Tensor& k) {
  const auto start = find(n, {"start_pos"});
  if (!start) return static_cast<double>(k.dim(-2));
  return std::min(n.number(*start) + static_cast<double>(q.dim(1)), static_cast<double>(k.dim(1)));
}

double attention_flops(const Node& n) {
  const auto q = find(n, {"q"});
  const auto k = find(n, {"k_cache", "k"});
  if (!q || !k) return 0;
  double seen = context_of(n, n.in(*q), n.in(*k));
  // With a cache a row sees those before it only.
  if (find(n, {"start_pos"}) && !find(n, {"attn_mask"}))
    seen -= static_cast<double>(n.in(*q).dim(1) - 1) / 2;
  return 4 * count(n.in(*q)) * seen;
}

}  // namespace

double flops_of(const Node& n) {
  const std::string_view family = n.def().family;
  if (family == "matmul") return product_flops(n);
  if (family == "qlinear") return layer_flops(n);
  if (family == "conv") return convolution_flops(n);
  if (family == "attention") return attention_flops(n);
  return 0;
}

double bytes_of(const Node& n, ValueId id) {
  const Tensor t = n.tensor(id);
  const double element = t.dtype == DType::kI64 ? 4 : static_cast<double>(size_bytes(t.dtype));
  const double whole = count(t) * element;
  const std::span<const Arg> args = n.def().args;
  const auto place = std::ranges::find(n.node().args, id);
  const auto at = static_cast<size_t>(place - n.node().args.begin());
  if (at >= args.size() || t.rank() < 2) return whole;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto& bound = args[i].bound;
    if (!bound || bound->of != at || bound->along != IndexBound::Along::kRows ||
        args[i].kind != ArgKind::kTensor || !n.has(i))
      continue;
    return std::min(whole, whole / static_cast<double>(t.dim(0)) * count(n.in(i)));
  }
  const auto q = find(n, {"q"});
  if (args[at].cache && q && find(n, {"start_pos"}))
    return whole / static_cast<double>(t.dim(1)) * context_of(n, n.in(*q), t);
  return whole;
}

}  // namespace pteryx::ops

// The operators that are linear layers with quantised weights, or made by passes: what
// their arguments say, and shapes.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/qlinear.h"

#include <algorithm>
#include <vector>

#include "pteryx/ops/quant/parts.h"
#include "pteryx/ops/quant/rows.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

using namespace qlinear;  // NOLINT(google-build-using-namespace): the rows

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }
size_t at(int8_t arg) { return static_cast<size_t>(arg); }
bool is_set(const Node& n, int8_t flag) {
  return flag >= 0 && n.has(at(flag)) && n.number(at(flag)) != 0;
}

Status check_length(const Node& n, int8_t arg, int64_t length) {
  const Tensor t = n.in(at(arg));
  if (t.numel() >= length) return {};
  return n.mismatch(at(arg), "shape", fmt::format("at least {} elements", length),
                    to_string(t.dims));
}

// One scale for every `group` of k, as [groups, n or more] or [n / 8 or more, groups, 8]; or one
// for each row of weight.
Status set_scales(const Node& n, QLinear& d) {
  const Row& r = row(n);
  if (r.scales < 0) {
    d.group = std::max<int64_t>(d.k, 1);
    return {};
  }
  d.scales = n.in(at(r.scales));
  if (r.group < 0) {
    d.group = std::max<int64_t>(d.k, 1);
    return check_length(n, r.scales, d.n);
  }
  PTERYX_ASSIGN(d.group, n.integer(at(r.group)));
  if (d.group <= 0 || d.k % d.group != 0) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("group_size {} does not divide the {} columns of x", d.group, d.k));
  }
  const Dims& dims = d.scales.dims;
  const bool blocks = dims.rank() == 3;
  d.scale_order = blocks ? ScaleOrder::kBlocks : ScaleOrder::kGroups;
  d.scale_row = blocks ? dims[1] * dims[2] : dims[1];
  const int64_t groups = d.k / d.group;
  if (blocks ? dims[0] * 8 >= d.n && dims[1] >= groups && dims[2] == 8
             : dims[0] >= groups && dims[1] >= d.n) {
    return {};
  }
  return n.mismatch(at(r.scales), "shape",
                    fmt::format("at least {}", to_string(blocks ? Dims{(d.n + 7) / 8, groups, 8}
                                                                : Dims{groups, d.n})),
                    to_string(dims));
}

// As the scales.
Status set_minimums(const Node& n, QLinear& d) {
  const Row& r = row(n);
  if (r.minimums < 0 || !n.has(at(r.minimums))) return {};
  d.minimums = n.in(at(r.minimums));
  PTERYX_TRY(n.expect(at(r.minimums), "shape", d.scales.dims, d.minimums->dims));
  if (d.minimums->dtype == d.scales.dtype) return {};
  return n.malformed(at(r.minimums), "type", name(d.scales.dtype), name(d.minimums->dtype));
}

// The first row of x is at `start` of the rows that a tensor has along a dim. This runs in every
// step: text is made for errors only.
struct Start {
  std::string_view name;
  int64_t at;
};
struct Places {
  std::string_view name;
  const Tensor& tensor;
  int64_t dim;
};
Status check_positions(const Node& n, const Start& start, const QLinear& d, const Places& places) {
  if (start.at < 0) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("{}: expected 0 or more, got {}", start.name, start.at));
  }
  const int64_t rows = places.tensor.dim(places.dim);
  if (start.at <= rows - d.m) return {};
  return n.fail(Code::kInvalidArgument,
                fmt::format("{} {} + {} rows exceed the {} rows of {} ({})", start.name, start.at,
                            d.m, rows, places.name, n.graph().label(places.tensor.id)));
}

Status shape_rotated(const Node& n, const QLinear& d, Shapes& s) {
  PTERYX_ASSIGN(const RotationRows rows, rotation_rows(n));
  const Rotation& t = *d.rotation;
  if (d.m < 1) return n.fail(Code::kInvalidArgument, "x has no rows");
  PTERYX_TRY(check_positions(n, {"position", rows.table}, d, {"freqs_cos", t.cos, 0}));
  PTERYX_TRY(check_positions(n, {"start_pos", rows.caches}, d, {"k_cache", t.keys, 1}));
  return s.set({1, d.m, (d.n - 2 * t.kv_width()) / t.size(), t.size()});
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const QLinear d, describe_qlinear(n));
  if (d.rotation) return shape_rotated(n, d, s);
  Dims y = d.x.dims;
  if (row(n).widths < 0) {
    y[y.rank() - 1] = d.n;
    return s.set(y);
  }
  PTERYX_ASSIGN(const Dims widths, n.ints(at(row(n).widths)));
  if (is_set(n, row(n).last)) y = {1, d.n};
  for (size_t i = 0; i < n.out_count(); ++i) {
    y[y.rank() - 1] = widths[i];
    PTERYX_TRY(s.set(i, y));
  }
  return {};
}

// Results that share the columns out.
Status read_results(const Node& n, QLinear& d) {
  constexpr size_t kMost = 4;
  PTERYX_ASSIGN(const Dims widths, n.ints(at(row(n).widths)));
  bool good = widths.rank() == n.out_count() && widths.rank() >= 1 && widths.rank() <= kMost;
  int64_t columns = 0;
  for (size_t i = 0; good && i < widths.rank(); ++i) {
    good = n.has_out(i) && widths[i] >= 0 && (widths.rank() == 1 || widths[i] % 4 == 0);
    if (!good) break;
    columns += widths[i];
    if (i > 0) d.more.push_back(n.out(i));
  }
  const int64_t expected = d.gated ? d.n / 2 : d.n;
  if (d.gated) good = good && d.n % 8 == 0 && widths.rank() == 1 && !d.residual;
  if (good && columns == expected) return {};
  return n.fail(Code::kInvalidProgram,
                fmt::format("widths: expected those of 1 to {} results, in multiples of 4, {} "
                            "together, got {} for {} results",
                            d.gated ? 1 : kMost, expected, to_string(widths), n.out_count()));
}

// The norms of the heads: both, or none.
Status read_head_norms(const Node& n, Rotation& t) {
  const Row& r = row(n);
  for (const auto& [arg, to] : {std::pair(r.q_norm, &t.q_norm), std::pair(r.k_norm, &t.k_norm)}) {
    if (!n.has(at(arg))) continue;
    *to = n.in(at(arg));
    PTERYX_TRY(n.expect(at(arg), "shape", {t.size()}, (*to)->dims));
  }
  if (t.q_norm.has_value() != t.k_norm.has_value())
    return n.fail(Code::kInvalidProgram, "q_norm and k_norm: expected both or none, got one");
  t.eps = n.number_or(at(r.head_eps), 0);
  return {};
}

// The caches and tables of a layer that makes queries, keys and values.
Status read_rotation(const Node& n, QLinear& d) {
  const Row& r = row(n);
  Rotation t{.halves = is_set(n, r.halves),
             .cos = n.in(at(r.cos)),
             .sin = n.in(at(r.sin)),
             .table_start = n.has(at(r.table_start)) ? n.live(at(r.table_start)) : LiveInt{},
             .keys = n.in(at(r.k_cache)),
             .values = n.in(at(r.v_cache)),
             .position = n.live(at(r.start))};
  PTERYX_TRY(n.expect(at(r.v_cache), "shape", t.keys.dims, t.values.dims));
  const int64_t queries = d.n - 2 * t.kv_width();
  const bool good = d.x.dim(0) == 1 && t.keys.dim(0) == 1 && t.size() > 0 &&
                    t.size() % (t.halves ? 4 : 2) == 0 && t.kv_width() > 0 && queries > 0 &&
                    queries % t.size() == 0;
  if (!good) {
    return n.fail(Code::kInvalidProgram,
                  fmt::format("{} columns do not make heads of queries, keys and values for caches "
                              "{}",
                              d.n, to_string(t.keys.dims)));
  }
  if (t.values.dtype != t.keys.dtype)
    return n.malformed(at(r.v_cache), "type", name(t.keys.dtype), name(t.values.dtype));
  const Dims table = {t.cos.dim(0), t.halves ? t.size() : t.size() / 2};
  PTERYX_TRY(n.expect(at(r.cos), "shape", table, t.cos.dims));
  PTERYX_TRY(n.expect(at(r.sin), "shape", table, t.sin.dims));
  PTERYX_TRY(read_head_norms(n, t));
  d.rotation = t;
  return {};
}

}  // namespace

Result<RotationRows> rotation_rows(const Node& n) {
  RotationRows rows;
  PTERYX_ASSIGN(rows.table, n.integer_or(at(row(n).table_start), 0));
  PTERYX_ASSIGN(rows.caches, n.integer(at(row(n).start)));
  return rows;
}

Result<QLinear> describe_qlinear(const Node& n) {
  const Row& r = row(n);
  QLinear d;
  d.x = n.in(kX);
  d.weight = n.in(at(r.weight));
  d.y = n.out(0);
  d.m = d.x.rows();
  d.k = d.x.dim(-1);
  if (is_set(n, r.last)) {
    if (d.x.rank() != 3 || d.x.dims[0] != 1 || d.m < 1) {
      return n.mismatch(kX, "shape", fmt::format("[1, 1 or more, {}]", d.k), to_string(d.x.dims));
    }
    d.first_row = d.m - 1;
    d.m = 1;
  }
  d.n = d.weight.dims[0];
  d.codes = r.codes;
  d.row_bytes = d.weight.dims[1] * static_cast<int64_t>(size_bytes(d.weight.dtype));
  const bool nibbles = r.codes == Codes::kLowFirst || r.codes == Codes::kHighFirst;
  const int64_t row_codes = d.weight.dims[1] * (nibbles ? 2 : 1);
  if (nibbles ? row_codes < d.k : row_codes != d.k) {
    return n.mismatch(at(r.weight), "shape",
                      fmt::format("rows of {} codes for x {}", d.k, to_string(d.x.dims)),
                      to_string(d.weight.dims));
  }
  PTERYX_TRY(set_scales(n, d));
  PTERYX_TRY(set_minimums(n, d));
  if (r.bias >= 0 && n.has(at(r.bias))) {
    PTERYX_TRY(check_length(n, r.bias, d.n));
    d.bias = n.in(at(r.bias));
  }
  if (r.residual >= 0 && n.has(at(r.residual))) {
    d.residual = n.in(at(r.residual));
    if (d.residual->numel() != d.m * d.n) {
      return n.mismatch(at(r.residual), "elements", std::to_string(d.m * d.n),
                        std::to_string(d.residual->numel()));
    }
  }
  if (r.norm >= 0 && n.has(at(r.norm))) {
    d.norm = n.in(at(r.norm));
    d.eps = n.number_or(at(r.eps), 0);
    if (d.norm->numel() != d.k) {
      return n.mismatch(at(r.norm), "elements", std::to_string(d.k),
                        std::to_string(d.norm->numel()));
    }
  }
  d.gated = is_set(n, r.gated);
  if (r.widths >= 0) PTERYX_TRY(read_results(n, d));
  if (r.k_cache >= 0) PTERYX_TRY(read_rotation(n, d));
  if (r.factor >= 0) d.factor = n.number(at(r.factor));
  if (r.x_zero >= 0) d.x_zero = n.number(at(r.x_zero));
  if (r.row_scale >= 0) {
    PTERYX_TRY(check_length(n, r.row_scale, d.m));
    PTERYX_TRY(check_length(n, r.row_zero, d.m));
    d.row_scale = n.in(at(r.row_scale));
    d.row_zero = n.in(at(r.row_zero));
  }
  return d;
}

void add_qlinear(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    const bool floats = r.codes == Codes::kNone;
    table.push_back({.name = r.name,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .cpu = qlinear_on_cpu,
                     .fast = qlinear_fast,
                     .family = floats ? "matmul" : "qlinear",
                     .routes = floats ? linear_routes() : qlinear_routes(),
                     .row = &r});
  }
}

}  // namespace pteryx::ops

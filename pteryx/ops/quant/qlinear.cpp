// The operators that are linear layers with quantised weights: arguments, shapes, CPU kernel.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/quant/qlinear.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "pteryx/ops/quant/parts.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

using qlinear::Columns;

// Where an operator keeps its arguments; -1: it has none.
struct Row {
  std::string_view name;
  std::span<const Arg> args;
  Codes codes;
  int8_t weight, scales;
  int8_t group;  // none: one scale per row of weight
  int8_t bias, residual;
  int8_t factor, x_zero;       // numbers
  int8_t row_scale, row_zero;  // tensors
  int8_t norm, eps;
  int8_t gated;
  int8_t widths;  // of several results
  // Of a layer that makes queries, keys and values.
  int8_t cos, sin, table_start, k_cache, v_cache, start;
};
constexpr size_t kX = 0;

constexpr int8_t place(std::span<const Arg> args, std::string_view name, ArgKind kind) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name == name && args[i].kind == kind) return static_cast<int8_t>(i);
  }
  return -1;
}
constexpr Row make_row(std::string_view name, std::span<const Arg> args, Codes codes) {
  const auto tensor = [&](std::string_view arg) { return place(args, arg, ArgKind::kTensor); };
  const auto number = [&](std::string_view arg) { return place(args, arg, ArgKind::kNumber); };
  return {.name = name,
          .args = args,
          .codes = codes,
          .weight = tensor("weight"),
          .scales = tensor("scales"),
          .group = number("group_size"),
          .bias = tensor("bias"),
          .residual = tensor("residual"),
          .factor = number("in_scale"),
          .x_zero = number("in_zero_point"),
          .row_scale = tensor("in_scale"),
          .row_zero = tensor("in_zero_point"),
          .norm = tensor("norm"),
          .eps = number("eps"),
          .gated = number("gated"),
          .widths = place(args, "widths", ArgKind::kInts),
          .cos = tensor("freqs_cos"),
          .sin = tensor("freqs_sin"),
          .table_start = number("freqs_start"),
          .k_cache = tensor("k_cache"),
          .v_cache = tensor("v_cache"),
          .start = number("start_pos")};
}

constexpr DTypes kCode4 = only(DType::kU8);
constexpr DTypes kCode8 = only(DType::kI8);
constexpr Arg kGroupwise[] = {in("x", kFloats, 1),          in("weight", kCode4, 2, 2),
                              in("scales", kFloats, 2, 2),  number("group_size"),
                              optional_in("bias", kFloats), out("y", kFloats)};
constexpr Arg kChannel4[] = {in("x", kFloats, 1), in("weight", kCode4, 2, 2), in("scales", kFloats),
                             out("y", kFloats)};
constexpr Arg kChannel8[] = {in("x", kFloats, 1), in("weight", kCode8, 2, 2), in("scales", kFloats),
                             out("y", kFloats)};
constexpr Arg kStatic8[] = {
    in("x", kCode8, 1),           number("in_scale"), number("in_zero_point"),
    in("weight", kCode8, 2, 2),   in("weight_sums"),  in("scales", kFloats),
    optional_in("bias", kFloats), out("y", kFloats)};
constexpr Arg kDynamic8[] = {in("x", kFloats, 1),
                             in("in_scale", kFloats),
                             in("in_zero_point", kIntegers),
                             in("weight", kCode4, 2, 2),
                             in("weight_sums"),
                             in("scales", kFloats, 2, 2),
                             number("group_size"),
                             optional_in("bias", kFloats),
                             out("y", kFloats)};

// What passes make of them: several that read the same x are one, and take in the RMS norm before
// them and the addition, or the gate, behind them.
constexpr Arg kJoined4[] = {in("x", kFloats, 1),          optional_in("norm", kFloats),
                            optional_number("eps"),       in("weight", kCode4, 2, 2),
                            in("scales", kFloats, 2, 2),  number("group_size"),
                            optional_in("bias", kFloats), optional_in("residual", kFloats),
                            optional_number("gated"),     ints("widths"),
                            out_list("y", 0, kFloats)};
constexpr Arg kJoined8[] = {in("x", kFloats, 1),
                            optional_in("norm", kFloats),
                            optional_number("eps"),
                            in("weight", kCode8, 2, 2),
                            in("scales", kFloats),
                            optional_in("bias", kFloats),
                            optional_in("residual", kFloats),
                            optional_number("gated"),
                            ints("widths"),
                            out_list("y", 0, kFloats)};

// The same for queries, keys and values: with the rotation of the first two, and the update of the
// caches.
constexpr Arg written_cache(std::string_view name) {
  Arg a = mutated(name, kFloats);
  a.min_rank = a.max_rank = 4;
  a.cache = true;
  return a;
}
constexpr Arg kRotated4[] = {in("x", kFloats, 3, 3),
                             optional_in("norm", kFloats),
                             optional_number("eps"),
                             in("weight", kCode4, 2, 2),
                             in("scales", kFloats, 2, 2),
                             number("group_size"),
                             optional_in("bias", kFloats),
                             in("freqs_cos", kFloats, 2, 2),
                             in("freqs_sin", kFloats, 2, 2),
                             optional_number("freqs_start"),
                             written_cache("k_cache"),
                             written_cache("v_cache"),
                             number("start_pos"),
                             out("y", kFloats)};
constexpr Arg kRotated8[] = {in("x", kFloats, 3, 3),
                             optional_in("norm", kFloats),
                             optional_number("eps"),
                             in("weight", kCode8, 2, 2),
                             in("scales", kFloats),
                             optional_in("bias", kFloats),
                             in("freqs_cos", kFloats, 2, 2),
                             in("freqs_sin", kFloats, 2, 2),
                             optional_number("freqs_start"),
                             written_cache("k_cache"),
                             written_cache("v_cache"),
                             number("start_pos"),
                             out("y", kFloats)};

constexpr Row kRows[] = {
    make_row("pteryx.linear_q4gsw", kJoined4, Codes::kLowFirst),
    make_row("pteryx.linear_q4gsw_rope", kRotated4, Codes::kLowFirst),
    make_row("pteryx.linear_q8_rope", kRotated8, Codes::kBytes),
    make_row("pteryx.linear_q8", kJoined8, Codes::kBytes),
    make_row("et_vk.linear_q4gsw.default", kGroupwise, Codes::kLowFirst),
    make_row("et_vk.linear_qcs4w.default", kChannel4, Codes::kHighFirst),
    make_row("aten._weight_int8pack_mm.default", kChannel8, Codes::kBytes),
    make_row("et_vk.linear_q8ta_q8csw.default", kStatic8, Codes::kBytes),
    make_row("et_vk.linear_dq8ca_q4gsw.default", kDynamic8, Codes::kLowFirst),
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }
size_t at(int8_t arg) { return static_cast<size_t>(arg); }

Status check_length(const Node& n, int8_t arg, int64_t length) {
  const Tensor t = n.in(at(arg));
  if (t.numel() >= length) return {};
  return n.mismatch(at(arg), "shape", fmt::format("at least {} elements", length),
                    to_string(t.dims));
}

// One scale for every `group` of k, as [groups, n or more]; or one for each row of weight.
Status set_scales(const Node& n, QLinear& d) {
  const Row& r = row(n);
  if (r.group < 0) {
    d.group = std::max<int64_t>(d.k, 1);
    return check_length(n, r.scales, d.n);
  }
  PTERYX_ASSIGN(d.group, n.integer(at(r.group)));
  if (d.group <= 0 || d.k % d.group != 0) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("group_size {} does not divide the {} columns of x", d.group, d.k));
  }
  d.scale_row = d.scales.dims[1];
  if (d.scales.dims[0] < d.k / d.group || d.scale_row < d.n) {
    return n.mismatch(at(r.scales), "shape",
                      fmt::format("at least {}", to_string(Dims{d.k / d.group, d.n})),
                      to_string(d.scales.dims));
  }
  return {};
}

Status check_positions(const Node& n, int64_t start, const QLinear& d, int64_t rows,
                       std::string_view what, std::string_view of) {
  if (start < 0)
    return n.fail(Code::kInvalidArgument,
                  fmt::format("{}: expected 0 or more, got {}", what, start));
  if (start <= rows - d.m) return {};
  return n.fail(Code::kInvalidArgument, fmt::format("{} {} + {} rows exceed the {} rows of {}",
                                                    what, start, d.m, rows, of));
}

Status shape_rotated(const Node& n, const QLinear& d, Shapes& s) {
  const Row& r = row(n);
  PTERYX_ASSIGN(const int64_t table_start, n.integer_or(at(r.table_start), 0));
  PTERYX_ASSIGN(const int64_t start, n.integer(at(r.start)));
  const Rotation& t = *d.rotation;
  if (d.m < 1) return n.fail(Code::kInvalidArgument, "x has no rows");
  PTERYX_TRY(check_positions(n, table_start, d, t.cos.dim(0), "position",
                             fmt::format("freqs_cos ({})", n.graph().label(t.cos.id))));
  PTERYX_TRY(check_positions(n, start, d, t.keys.dim(1), "start_pos", "k_cache"));
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
  if (d.gated) good = good && d.n % 2 == 0 && widths.rank() == 1 && !d.residual;
  if (good && columns == expected) return {};
  return n.fail(Code::kInvalidProgram,
                fmt::format("widths: expected those of 1 to {} results, in multiples of 4, {} "
                            "together, got {} for {} results",
                            d.gated ? 1 : kMost, expected, to_string(widths), n.out_count()));
}

// The caches and tables of a layer that makes queries, keys and values.
Status read_rotation(const Node& n, QLinear& d) {
  const Row& r = row(n);
  Rotation t{.cos = n.in(at(r.cos)),
             .sin = n.in(at(r.sin)),
             .table_start = n.has(at(r.table_start)) ? n.live(at(r.table_start)) : LiveInt{},
             .keys = n.in(at(r.k_cache)),
             .values = n.in(at(r.v_cache)),
             .position = n.live(at(r.start))};
  PTERYX_TRY(n.expect(at(r.v_cache), "shape", t.keys.dims, t.values.dims));
  const int64_t queries = d.n - 2 * t.kv_width();
  const bool good = d.x.dim(0) == 1 && t.keys.dim(0) == 1 && t.size() > 0 && t.size() % 2 == 0 &&
                    t.kv_width() > 0 && queries > 0 && queries % t.size() == 0;
  if (!good) {
    return n.fail(Code::kInvalidProgram,
                  fmt::format("{} columns do not make heads of queries, keys and values for caches "
                              "{}",
                              d.n, to_string(t.keys.dims)));
  }
  if (t.values.dtype != t.keys.dtype)
    return n.malformed(at(r.v_cache), "type", name(t.keys.dtype), name(t.values.dtype));
  const Dims table = {t.cos.dim(0), t.size() / 2};
  PTERYX_TRY(n.expect(at(r.cos), "shape", table, t.cos.dims));
  PTERYX_TRY(n.expect(at(r.sin), "shape", table, t.sin.dims));
  d.rotation = t;
  return {};
}

int64_t code(const QLinear& d, const HostTensor& weight, int64_t n, int64_t k) {
  if (d.codes == Codes::kBytes) return weight.integer(n * d.row_bytes + k);
  const int64_t byte = weight.integer(n * d.row_bytes + k / 2);
  return (((k % 2 == 0) == (d.codes == Codes::kLowFirst) ? byte : byte >> 4) & 15) - 8;
}

void normalise(const QLinear& d, const HostTensor& weight, std::vector<double>& v) {
  for (size_t first = 0; first < v.size(); first += static_cast<size_t>(d.k)) {
    const std::span<double> row(v.data() + first, static_cast<size_t>(d.k));
    double squares = 0;
    for (const double e : row) squares += e * e;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(d.k) + d.eps);
    for (size_t k = 0; k < row.size(); ++k)
      row[k] *= scale * weight.number(static_cast<int64_t>(k));
  }
}

// x as the product sees it; rounding to codes is done in f32, as PyTorch does it.
std::vector<double> numbers(const QLinear& d, const Host& h) {
  const HostTensor x = h.host(d.x.id);
  std::vector<double> v(static_cast<size_t>(x.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = x.number(static_cast<int64_t>(i)) - d.x_zero;
  if (d.norm) normalise(d, h.host(d.norm->id), v);
  if (!d.row_scale) return v;
  const HostTensor scales = h.host(d.row_scale->id);
  const HostTensor zeros = h.host(d.row_zero->id);
  for (int64_t m = 0; m < d.m; ++m) {
    const auto scale = static_cast<float>(scales.number(m));
    const double zero = zeros.number(m);
    for (int64_t k = 0; k < d.k; ++k) {
      double& e = v[static_cast<size_t>(m * d.k + k)];
      const float rounded = std::nearbyint(static_cast<float>(e) * (1.0F / scale));
      e = (std::clamp(static_cast<double>(rounded) + zero, -128.0, 127.0) - zero) *
          static_cast<double>(scale);
    }
  }
  return v;
}

// One result per row of x and row of weights.
std::vector<double> sums_of(const QLinear& d, const Host& h) {
  const HostTensor weight = h.host(d.weight.id);
  const HostTensor scales = h.host(d.scales.id);
  const std::vector<double> x = numbers(d, h);
  std::vector<double> line(static_cast<size_t>(d.k));
  std::vector<double> sums(static_cast<size_t>(d.m * d.n));
  for (int64_t j = 0; j < d.n; ++j) {
    for (int64_t k = 0; k < d.k; ++k) {
      line[static_cast<size_t>(k)] =
          static_cast<double>(code(d, weight, j, k)) * scales.number(k / d.group * d.scale_row + j);
    }
    const double bias = d.bias ? h.host(d.bias->id).number(j) : 0.0;
    for (int64_t m = 0; m < d.m; ++m) {
      double total = 0;
      for (size_t k = 0; k < line.size(); ++k)
        total += x[static_cast<size_t>(m) * line.size() + k] * line[k];
      const double more = d.residual ? h.host(d.residual->id).number(m * d.n + j) : 0.0;
      sums[static_cast<size_t>(m * d.n + j)] = d.factor * total + bias + more;
    }
  }
  return sums;
}

void put_gated(const QLinear& d, const Host& h, const std::vector<double>& sums) {
  const int64_t half = d.n / 2;
  for (int64_t i = 0; i < d.m * half; ++i) {
    const double gate = sums[static_cast<size_t>(i / half * d.n + i % half)];
    const double up = sums[static_cast<size_t>(i / half * d.n + i % half + half)];
    h.host(d.y.id).put(i, gate / (1 + std::exp(-gate)) * up);
  }
}

Status put_rotated(const Node& n, const QLinear& d, const Host& h, std::vector<double>& sums) {
  const Rotation& t = *d.rotation;
  PTERYX_ASSIGN(const int64_t table_start, n.integer_or(at(row(n).table_start), 0));
  PTERYX_ASSIGN(const int64_t start, n.integer(at(row(n).start)));
  const int64_t kv = t.kv_width();
  const int64_t queries = d.n - 2 * kv;
  for (int64_t m = 0; m < d.m; ++m) {
    for (int64_t j = 0; j < queries + kv; j += 2) {
      const int64_t at_table = (table_start + m) * (t.size() / 2) + j % t.size() / 2;
      const double c = h.host(t.cos.id).number(at_table);
      const double s = h.host(t.sin.id).number(at_table);
      double& a = sums[static_cast<size_t>(m * d.n + j)];
      double& b = sums[static_cast<size_t>(m * d.n + j + 1)];
      const double turned = a * c - b * s;
      b = b * c + a * s;
      a = turned;
    }
    for (int64_t j = 0; j < d.n; ++j) {
      const double v = sums[static_cast<size_t>(m * d.n + j)];
      if (j < queries) {
        h.host(d.y.id).put(m * queries + j, v);
      } else {
        const Tensor& cache = j < queries + kv ? t.keys : t.values;
        h.host(cache.id).put((start + m) * kv + (j - queries) % kv, v);
      }
    }
  }
  return {};
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const QLinear d, describe_qlinear(n));
  std::vector<double> sums = sums_of(d, h);
  if (d.gated) {
    put_gated(d, h, sums);
    return {};
  }
  if (d.rotation) return put_rotated(n, d, h, sums);
  for (const Columns& c : qlinear::results(d)) {
    for (int64_t i = 0; i < d.m * c.width; ++i) {
      h.host(c.y.id).put(i, sums[static_cast<size_t>(i / c.width * d.n + c.first + i % c.width)]);
    }
  }
  return {};
}

}  // namespace

Result<QLinear> describe_qlinear(const Node& n) {
  const Row& r = row(n);
  QLinear d;
  d.x = n.in(kX);
  d.weight = n.in(at(r.weight));
  d.scales = n.in(at(r.scales));
  d.y = n.out(0);
  d.m = d.x.rows();
  d.k = d.x.dim(-1);
  d.n = d.weight.dims[0];
  d.codes = r.codes;
  d.row_bytes = d.weight.dims[1];
  const int64_t row_codes = d.row_bytes * (r.codes == Codes::kBytes ? 1 : 2);
  if (r.codes == Codes::kBytes ? row_codes != d.k : row_codes < d.k) {
    return n.mismatch(at(r.weight), "shape",
                      fmt::format("rows of {} codes for x {}", d.k, to_string(d.x.dims)),
                      to_string(d.weight.dims));
  }
  PTERYX_TRY(set_scales(n, d));
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
  if (r.gated >= 0) d.gated = n.has(at(r.gated)) && n.number(at(r.gated)) != 0;
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
    table.push_back({.name = r.name,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .cpu = cpu,
                     .family = "qlinear",
                     .routes = qlinear_routes(),
                     .row = &r});
  }
}

}  // namespace pteryx::ops

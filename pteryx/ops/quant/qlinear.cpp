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
  int8_t group = -1;  // none: one scale per row of weight
  int8_t bias = -1;
  int8_t factor = -1, x_zero = -1;       // numbers
  int8_t row_scale = -1, row_zero = -1;  // tensors
  int8_t residual = -1;
  int8_t widths = -1;  // of several results
};
constexpr size_t kX = 0;

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

// What passes make of them: several that read the same x are one, an addition behind one is in it.
constexpr Arg kJoined4[] = {
    in("x", kFloats, 1),  in("weight", kCode4, 2, 2),   in("scales", kFloats, 2, 2),
    number("group_size"), optional_in("bias", kFloats), optional_in("residual", kFloats),
    ints("widths"),       out_list("y", 0, kFloats)};
constexpr Arg kJoined8[] = {
    in("x", kFloats, 1),          in("weight", kCode8, 2, 2),       in("scales", kFloats),
    optional_in("bias", kFloats), optional_in("residual", kFloats), ints("widths"),
    out_list("y", 0, kFloats)};

constexpr Row kRows[] = {
    {.name = "pteryx.linear_q4gsw",
     .args = kJoined4,
     .codes = Codes::kLowFirst,
     .weight = 1,
     .scales = 2,
     .group = 3,
     .bias = 4,
     .residual = 5,
     .widths = 6},
    {.name = "pteryx.linear_q8",
     .args = kJoined8,
     .codes = Codes::kBytes,
     .weight = 1,
     .scales = 2,
     .bias = 3,
     .residual = 4,
     .widths = 5},
    {.name = "et_vk.linear_q4gsw.default",
     .args = kGroupwise,
     .codes = Codes::kLowFirst,
     .weight = 1,
     .scales = 2,
     .group = 3,
     .bias = 4},
    {.name = "et_vk.linear_qcs4w.default",
     .args = kChannel4,
     .codes = Codes::kHighFirst,
     .weight = 1,
     .scales = 2},
    {.name = "aten._weight_int8pack_mm.default",
     .args = kChannel8,
     .codes = Codes::kBytes,
     .weight = 1,
     .scales = 2},
    {.name = "et_vk.linear_q8ta_q8csw.default",
     .args = kStatic8,
     .codes = Codes::kBytes,
     .weight = 3,
     .scales = 5,
     .bias = 6,
     .factor = 1,
     .x_zero = 2},
    {.name = "et_vk.linear_dq8ca_q4gsw.default",
     .args = kDynamic8,
     .codes = Codes::kLowFirst,
     .weight = 3,
     .scales = 5,
     .group = 6,
     .bias = 7,
     .row_scale = 1,
     .row_zero = 2},
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

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const QLinear d, describe_qlinear(n));
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
  if (good && columns == d.n) return {};
  return n.fail(Code::kInvalidProgram,
                fmt::format("widths: expected those of 1 to {} results, in multiples of 4, {} "
                            "together, got {} for {} results",
                            kMost, d.n, to_string(widths), n.out_count()));
}

int64_t code(const QLinear& d, const HostTensor& weight, int64_t n, int64_t k) {
  if (d.codes == Codes::kBytes) return weight.integer(n * d.row_bytes + k);
  const int64_t byte = weight.integer(n * d.row_bytes + k / 2);
  return (((k % 2 == 0) == (d.codes == Codes::kLowFirst) ? byte : byte >> 4) & 15) - 8;
}

// x as the product sees it; rounding to codes is done in f32, as PyTorch does it.
std::vector<double> numbers(const QLinear& d, const Host& h) {
  const HostTensor x = h.host(d.x.id);
  std::vector<double> v(static_cast<size_t>(x.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = x.number(static_cast<int64_t>(i)) - d.x_zero;
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

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const QLinear d, describe_qlinear(n));
  const HostTensor weight = h.host(d.weight.id);
  const HostTensor scales = h.host(d.scales.id);
  const std::vector<Columns> columns = qlinear::results(d);
  const std::vector<double> x = numbers(d, h);
  std::vector<double> line(static_cast<size_t>(d.k));
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
      const Columns& c = *std::find_if(columns.begin(), columns.end(), [&](const Columns& each) {
        return j < each.first + each.width;
      });
      h.host(c.y.id).put(m * c.width + j - c.first, d.factor * total + bias + more);
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
  if (r.widths >= 0) PTERYX_TRY(read_results(n, d));
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

// Softmax and log-softmax over one dim, in f32 with the largest value subtracted.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/softmax.h"

#include <algorithm>
#include <cmath>

#include "pteryx/cpu/softmax.h"
#include "pteryx/ops/float_rows.h"
#include "pteryx/ops/fold.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kX, kDim };

struct Row {
  std::string_view name;
  std::string_view spelling;
  std::string_view result;  // WGSL over x, peak and total
  bool log;
};
constexpr Row kRows[] = {
    {"aten._softmax.default", "aten::_softmax.out", "decay(x - peak) / total", false},
    {"aten._log_softmax.default", "aten::_log_softmax.out", "(x - peak) - log(total)", true},
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

struct Extents {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};
Result<Extents> extents(const Node& n) {
  const Tensor x = n.in(kX);
  PTERYX_ASSIGN(const size_t dim, n.dim(kDim, x.rank()));
  Extents e;
  for (size_t i = 0; i < x.rank(); ++i)
    (i < dim ? e.outer : (i == dim ? e.length : e.inner)) *= x.dims[i];
  return e;
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN([[maybe_unused]] const size_t dim, n.dim(kDim, n.in(kX).rank()));
  return s.set(n.in(kX).dims);
}

// Few long rows leave most of a GPU idle: cut them into parts, in two passes.
int64_t splits_of(const Extents& e, const gpu::Caps& caps) {
  constexpr int64_t kPart = 4096;
  const int64_t enough = 4 * int64_t{caps.sizes.processors};
  const int64_t rows = e.outer * e.inner;
  if (e.length < 2 * kPart || rows * 2 > enough) return 1;
  return std::min(e.length / kPart, enough / std::max<int64_t>(rows, 1));
}

// All at once, or the parts of rows and then what becomes of them.
enum class Pass : uint8_t { kAll, kParts, kMerge };
constexpr std::array<std::string_view, 3> kPasses = {"all", "parts", "merge"};

Status plan_pass(const Node& n, Plan& p, const Extents& e, const Fold& f, Pass pass,
                 const Tensor& parts, const shaders::SoftmaxParams& params) {
  const Tensor y = n.out();
  const bool row_words = pass != Pass::kParts && in_row_words(y.dtype, e.inner == 1 ? e.length : 1);
  std::vector<Bind> bind = {{"x", n.in(kX)}};
  if (pass != Pass::kAll) bind.push_back({"parts", parts});
  if (pass != Pass::kParts) bind.push_back({"y", y});
  Options options = f.options();
  options.set("pass", std::string(kPasses[static_cast<size_t>(pass)]))
      .set("held", held_steps(f, params.chunk, row_lanes(row_words, y.dtype)))
      .set("row_words", row_words ? 1 : 0)
      .set("result", std::string(row(n).result));
  return p.dispatch(n, {.shader = &shaders::softmax,
                        .options = std::move(options),
                        .variant = row(n).log ? "log" : "",
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = f.grid(int64_t{params.rows} * params.splits, p.caps())});
}

template <FoldRoute R>
Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Extents e, extents(n));
  const int64_t rows = e.length == 0 ? 0 : e.outer * e.inner;
  const int64_t splits = R == FoldRoute::kSerial ? 1 : splits_of(e, p.caps());
  const int64_t chunk = splits == 1 ? e.length : (e.length / splits + 64) / 64 * 64;
  const shaders::SoftmaxParams params{.rows = u32(rows),
                                      .length = u32(e.length),
                                      .inner = u32(e.inner),
                                      .splits = u32(splits),
                                      .chunk = u32(chunk)};
  const Fold f = make_fold(R, chunk, 1024, p.caps());
  if (splits == 1) return plan_pass(n, p, e, f, Pass::kAll, {}, params);
  const Tensor parts = p.scratch(DType::kF32, {rows, splits, 2});
  PTERYX_TRY(plan_pass(n, p, e, f, Pass::kParts, parts, params));
  return plan_pass(n, p, e, f, Pass::kMerge, parts, params);
}

// Teams read neighbouring items of a row; lone invocations read neighbouring rows where those are
// neighbours.
bool suits_teams(const Node& n, const gpu::Caps& /*caps*/) {
  const auto e = extents(n);
  return e.ok() && e->length > 8 && (e->inner < 16 || e->outer * e->inner < 64);
}

constexpr Route kRoutes[] = {
    {"subgroup", fits_subgroup_fold, plan<FoldRoute::kSubgroup>, suits_teams},
    {"workgroup", nullptr, plan<FoldRoute::kTree>, suits_teams},
    {"serial", nullptr, plan<FoldRoute::kSerial>},
};

Status plain(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Extents e, extents(n));
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor y = h.host(n.out_id());
  for (int64_t r = 0; r < e.outer * e.inner && e.length > 0; ++r) {
    const int64_t base = r / e.inner * e.inner * e.length + r % e.inner;
    double peak = x.number(base);
    for (int64_t k = 1; k < e.length; ++k) peak = std::fmax(peak, x.number(base + k * e.inner));
    double total = 0;
    for (int64_t k = 0; k < e.length; ++k) total += std::exp(x.number(base + k * e.inner) - peak);
    for (int64_t k = 0; k < e.length; ++k) {
      const double d = x.number(base + k * e.inner) - peak;
      y.put(base + k * e.inner, row(n).log ? d - std::log(total) : std::exp(d) / total);
    }
  }
  return {};
}

Result<bool> fast(const Node& n, const Host& h, CpuContext& c) {
  PTERYX_ASSIGN(const Extents e, extents(n));
  if (n.out().numel() == 0 || !is_f32_or_f16(n.in(kX)) || !is_f32_or_f16(n.out())) return false;
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor y = h.host(n.out_id());
  float* const to = is_f32(n.out()) ? floats(y) : c.memory.take_array<float>(size(y.numel()));
  const auto kind = row(n).log ? cpu::SoftmaxKind::kLog : cpu::SoftmaxKind::kPlain;
  const auto length = size(e.length);
  if (e.inner > 1) {
    const auto columns = size(e.inner);
    const float* const from = widened(x, c);
    // A row of columns for each item of the outer dims.
    for_parts(c, size(e.outer) * columns, kPartElements / length, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end;) {
        const size_t at = i / columns * length * columns;
        const size_t first = i % columns;
        const size_t last = std::min(columns, first + end - i);
        cpu::softmax_columns(kind, {length, columns, first, last}, from + at, to + at);
        i += last - first;
      }
    });
    if (!is_f32(n.out()) && !c.dry_run()) store_floats(to, y, 0, size(y.numel()));
    return true;
  }
  for_parts(c, size(e.outer), kPartElements / length, [&](size_t begin, size_t end) {
    const auto at = static_cast<int64_t>(begin * length);
    const size_t count = (end - begin) * length;
    const float* from = to + at;
    if (is_f32(n.in(kX))) {
      from = floats(x) + at;
    } else {
      load_floats(x, at, count, to + at);
    }
    cpu::softmax(kind, from, end - begin, length, to + at);
    if (!is_f32(n.out())) store_floats(to + at, y, at, count);
  });
  return true;
}

constexpr Arg kArgs[] = {in("x", kFloats), number("dim"), any("half_to_float"), out("y", kFloats)};

}  // namespace

void add_softmax(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, 1),
                     .args = kArgs,
                     .shape = shape,
                     .plan = plan_by_route,
                     .cpu = plain,
                     .fast = fast,
                     .family = "softmax",
                     .routes = kRoutes,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

// Pooling over windows of a plane: mean or largest element, by kernel and stride or to a given size
// (adaptive).
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pteryx/ops/op.h"
#include "pteryx/ops/pool.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace pooling {
namespace {

struct Row {
  std::string_view name;
  std::array<std::string_view, 3> spellings;
  Form form;
  size_t spatial;
};

constexpr Row kRows[] = {
    {"aten.avg_pool2d.default", {"aten::avg_pool2d.out"}, Form::kMeanDivisor, 2},
    {"aten.avg_pool1d.default", {"aten::avg_pool1d.out"}, Form::kMean, 1},
    {"aten.max_pool2d.default", {}, Form::kMax, 2},
    {"aten.max_pool1d.default", {}, Form::kMax, 1},
    {"aten.max_pool2d_with_indices.default",
     {"aten::max_pool2d_with_indices.out"},
     Form::kMaxIndices,
     2},
    {"aten._adaptive_avg_pool2d.default",
     {"aten::_adaptive_avg_pool2d.out", "aten.adaptive_avg_pool2d.default",
      "aten::adaptive_avg_pool2d.out"},
     Form::kAdaptiveMean,
     2},
    {"aten.adaptive_avg_pool1d.default", {"aten::adaptive_avg_pool1d.out"}, Form::kAdaptiveMean, 1},
    {"aten.adaptive_max_pool2d.default",
     {"aten::adaptive_max_pool2d.out"},
     Form::kAdaptiveMaxIndices,
     2},
};

constexpr Arg kStrideArg = optional_ints("stride");
constexpr Arg kMeanArgs[] = {in("x"),         ints("kernel_size"), kStrideArg,
                             ints("padding"), number("ceil_mode"), number("count_include_pad"),
                             out("y")};
constexpr Arg kMeanDivisorArgs[] = {in("x"),
                                    ints("kernel_size"),
                                    kStrideArg,
                                    ints("padding"),
                                    number("ceil_mode"),
                                    number("count_include_pad"),
                                    optional_number("divisor_override"),
                                    out("y")};
constexpr Arg kMaxArgs[] = {in("x"),          ints("kernel_size"), kStrideArg, ints("padding"),
                            ints("dilation"), number("ceil_mode"), out("y")};
constexpr Arg kMaxIndicesArgs[] = {in("x"),
                                   ints("kernel_size"),
                                   kStrideArg,
                                   ints("padding"),
                                   ints("dilation"),
                                   number("ceil_mode"),
                                   out_values_and_indices("y")};
constexpr Arg kAdaptiveArgs[] = {in("x"), ints("output_size"), out("y")};
constexpr Arg kAdaptiveIndicesArgs[] = {in("x"), ints("output_size"), out_values_and_indices("y")};

std::span<const Arg> args(Form f) {
  switch (f) {
    case Form::kMean: return kMeanArgs;
    case Form::kMeanDivisor: return kMeanDivisorArgs;
    case Form::kMax: return kMaxArgs;
    case Form::kMaxIndices: return kMaxIndicesArgs;
    case Form::kAdaptiveMean: return kAdaptiveArgs;
    case Form::kAdaptiveMaxIndices: return kAdaptiveIndicesArgs;
  }
  return {};
}

enum Position {
  kX,
  kKernel,
  kStride,
  kPadding,
  kDilation,
  kMaxCeil,
  kMeanCeil = 4,
  kIncludePad,
  kDivisor
};
constexpr size_t kSize = 1;  // output_size of the adaptive forms

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }
bool has_indices(Form f) { return f == Form::kMaxIndices || f == Form::kAdaptiveMaxIndices; }

constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();

// Entry i of a list with one entry per axis or one for all.
Result<int64_t> entry(const Node& n, size_t arg, size_t i, int64_t least) {
  PTERYX_ASSIGN(const Dims list, n.ints(arg));
  const size_t spatial = row(n).spatial;
  if (list.size() != 1 && list.size() != spatial) {
    return n.malformed(arg, "length", spatial == 1 ? "1" : fmt::format("1 or {}", spatial),
                       std::to_string(list.size()));
  }
  const int64_t v = list[list.size() == 1 ? 0 : i];
  if (v < least || v > kLimit)
    return n.mismatch(arg, "entry", fmt::format("{} to {}", least, kLimit), std::to_string(v));
  return v;
}

// A last window that `ceil_mode` adds has to begin inside the input or its left padding.
Status read_sliding(const Node& n, size_t i, Axis& a) {
  const Form f = row(n).form;
  PTERYX_ASSIGN(a.kernel, entry(n, kKernel, i, 1));
  PTERYX_ASSIGN(const Dims stride, n.ints(kStride));
  PTERYX_ASSIGN(a.stride, stride.empty() ? Result<int64_t>(a.kernel) : entry(n, kStride, i, 1));
  PTERYX_ASSIGN(a.padding, entry(n, kPadding, i, 0));
  PTERYX_ASSIGN(a.dilation, is_max(f) ? entry(n, kDilation, i, 1) : Result<int64_t>(1));
  const int64_t reach = a.dilation * (a.kernel - 1) + 1;
  if (a.padding > reach / 2) {
    return n.malformed(kPadding, "entry", fmt::format("at most half of the kernel's {}", reach),
                       std::to_string(a.padding));
  }
  const int64_t free = a.in + 2 * a.padding - reach;
  const bool ceil = n.flag(is_max(f) ? kMaxCeil : kMeanCeil);
  if (free < 0 && (!ceil || free <= -a.stride)) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("a kernel of size {} (dilated) exceeds the padded input of size {}",
                              reach, a.in + 2 * a.padding));
  }
  a.out = (free + (ceil ? a.stride - 1 : 0)) / a.stride + 1;
  if (ceil && (a.out - 1) * a.stride >= a.in + a.padding) --a.out;
  return {};
}

}  // namespace

Result<Pool> read_pool(const Node& n) {
  const Tensor x = n.in(kX);
  const size_t spatial = row(n).spatial;
  if (x.rank() != spatial + 1 && x.rank() != spatial + 2) {
    return n.malformed(kX, "rank", fmt::format("{} or {}", spatial + 1, spatial + 2),
                       std::to_string(x.rank()));
  }
  Pool p;
  for (size_t i = 0; i < spatial; ++i) {
    Axis& a = i + 1 == spatial ? p.w : p.h;
    a.in = x.dims[x.rank() - spatial + i];
    if (a.in > kLimit)
      return n.unsupported(fmt::format("a size of {}: at most {} are supported", a.in, kLimit));
    if (is_adaptive(row(n).form)) {
      PTERYX_ASSIGN(a.out, entry(n, kSize, i, 0));
      if (a.in == 0 && a.out > 0)
        return n.fail(Code::kInvalidArgument, fmt::format("x {} is empty", to_string(x.dims)));
    } else {
      PTERYX_TRY(read_sliding(n, i, a));
    }
  }
  return p;
}

namespace {

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Pool p, read_pool(n));
  Dims dims = n.in(kX).dims;
  dims[dims.rank() - 1] = p.w.out;
  if (row(n).spatial == 2) dims[dims.rank() - 2] = p.h.out;
  PTERYX_TRY(s.set(0, dims));
  return has_indices(row(n).form) ? s.set(1, dims) : Status();
}

}  // namespace

bool wants_indices(const Node& n) {
  if (!has_indices(row(n).form)) return false;
  const ValueId id = n.out_id(1);
  return id != graph::kNoValue && n.graph().tensor(id) != nullptr;
}

namespace {

// The shader counts positions, and cuts adaptive windows, in 32 bits.
bool fits_shader(const Axis& a, bool adaptive) {
  constexpr int64_t kMost = 1 << 30;
  if (adaptive) return a.in * (a.out + 1) <= kMost;
  return a.in + 2 * a.padding + a.stride <= kMost && a.dilation * a.kernel <= kMost;
}

bool gpu(const Node& n) {
  if (!is_float(n.in(kX).dtype)) return false;
  const auto p = read_pool(n);
  const bool adaptive = is_adaptive(row(n).form);
  return !p.ok() || (fits_shader(p->h, adaptive) && fits_shader(p->w, adaptive));
}

}  // namespace

Form form_of(const Node& n) { return row(n).form; }

Divisor divisor(const Node& n) {
  const Form f = row(n).form;
  if (f == Form::kMeanDivisor && n.has(kDivisor)) return {DivisorKind::kGiven, n.number(kDivisor)};
  const bool window = !is_max(f) && !is_adaptive(f) && n.flag(kIncludePad);
  return {window ? DivisorKind::kWindow : DivisorKind::kArea, 1};
}

namespace {

// As the shader has them.
constexpr std::array<const char*, 3> kDivisorNames = {"given", "window", "area"};

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Pool pool, read_pool(n));
  const Tensor y = n.out();
  const Form f = row(n).form;
  const shaders::PoolParams params{.in_h = u32(pool.h.in),
                                   .in_w = u32(pool.w.in),
                                   .out_h = u32(pool.h.out),
                                   .out_w = u32(pool.w.out),
                                   .kernel_h = u32(pool.h.kernel),
                                   .kernel_w = u32(pool.w.kernel),
                                   .stride_h = u32(pool.h.stride),
                                   .stride_w = u32(pool.w.stride),
                                   .padding_h = u32(pool.h.padding),
                                   .padding_w = u32(pool.w.padding),
                                   .dilation_h = u32(pool.h.dilation),
                                   .dilation_w = u32(pool.w.dilation),
                                   .n = u32(y.numel()),
                                   .lowest = -std::numeric_limits<float>::infinity(),
                                   .divisor = static_cast<float>(divisor(n).given)};
  std::vector<Bind> bind = {{"x", n.in(kX)}, {"y", y}};
  if (wants_indices(n)) bind.push_back({"indices", n.out(1)});
  return p.dispatch(n,
                    {.shader = &shaders::pool,
                     .options = {{"result", is_max(f) ? "max" : "mean"},
                                 {"divisor", kDivisorNames[static_cast<size_t>(divisor(n).kind)]},
                                 {"adaptive", is_adaptive(f) ? 1 : 0},
                                 {"has_indices", wants_indices(n) ? 1 : 0}},
                     .variant = is_max(f) ? "max" : "mean",
                     .bind = std::move(bind),
                     .params = bytes_of(params),
                     .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

}  // namespace

Span span(const Axis& a, int64_t o, bool adaptive) {
  if (adaptive) {
    const int64_t begin = o * a.in / a.out;
    const int64_t end = ((o + 1) * a.in + a.out - 1) / a.out;
    return {begin, end, end - begin};
  }
  const int64_t begin = o * a.stride - a.padding;
  const int64_t end = std::min(begin + a.dilation * (a.kernel - 1) + 1, a.in + a.padding);
  int64_t inside = begin;
  while (inside < 0) inside += a.dilation;
  return {inside, std::min(end, a.in), end - begin};
}

namespace {

// Calls visit(index in the plane) over a window, row by row.
template <typename F>
void for_each_element(const Pool& p, const Span& h, const Span& w, F&& visit) {
  for (int64_t i = h.begin; i < h.end; i += p.h.dilation) {
    for (int64_t j = w.begin; j < w.end; j += p.w.dilation) visit(i * p.w.in + j);
  }
}

void mean_window(const Node& n, const Pool& p, const HostTensor& x, int64_t plane, const Span& h,
                 const Span& w, const HostTensor& y, int64_t i) {
  double sum = 0;
  int64_t area = 0;
  for_each_element(p, h, w, [&](int64_t at) {
    sum += x.number(plane + at);
    ++area;
  });
  const Divisor d = divisor(n);
  double by = static_cast<double>(area);
  if (d.kind == DivisorKind::kGiven) by = d.given;
  if (d.kind == DivisorKind::kWindow) by = static_cast<double>(h.size * w.size);
  y.put(i, area == 0 ? 0.0 : sum / by);
}

// Returns where the largest element lies; a NaN is larger than anything.
int64_t max_window(const Pool& p, const HostTensor& x, int64_t plane, const Span& h, const Span& w,
                   const HostTensor& y, int64_t i) {
  int64_t best_at = h.begin * p.w.in + w.begin;
  if (!is_float(x.dtype)) {
    int64_t best = std::numeric_limits<int64_t>::min();
    for_each_element(p, h, w, [&](int64_t at) {
      const int64_t v = x.integer(plane + at);
      if (v <= best) return;
      best = v;
      best_at = at;
    });
    y.put_integer(i, best);
    return best_at;
  }
  double best = -std::numeric_limits<double>::infinity();
  for_each_element(p, h, w, [&](int64_t at) {
    const double v = x.number(plane + at);
    if (!(v > best) && !std::isnan(v)) return;
    best = v;
    best_at = at;
  });
  y.put(i, best);
  return best_at;
}

Status cpu(const Node& n, const Host& host) {
  PTERYX_ASSIGN(const Pool p, read_pool(n));
  const Form f = row(n).form;
  const HostTensor x = host.host(n.in(kX).id);
  const HostTensor y = host.host(n.out_id());
  const bool indices = wants_indices(n);
  const HostTensor at = indices ? host.host(n.out_id(1)) : y;
  for (int64_t i = 0; i < y.numel(); ++i) {
    const Span w = span(p.w, i % p.w.out, is_adaptive(f));
    const Span h = span(p.h, i / p.w.out % p.h.out, is_adaptive(f));
    const int64_t plane = i / p.w.out / p.h.out * p.h.in * p.w.in;
    if (is_max(f)) {
      const int64_t best_at = max_window(p, x, plane, h, w, y, i);
      if (indices) at.put_integer(i, best_at);
    } else {
      mean_window(n, p, x, plane, h, w, y, i);
    }
  }
  return {};
}

}  // namespace
}  // namespace pooling

void add_pool(std::vector<OpDef>& table) {
  for (const pooling::Row& r : pooling::kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = pooling::args(r.form),
                     .shape = pooling::shape,
                     .plan = pooling::plan,
                     .gpu = pooling::gpu,
                     .cpu = pooling::cpu,
                     .fast = pooling::fast,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

// Distances between all pairs of rows: cdist. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/distance.h"

#include <cmath>

#include "pteryx/ops/op.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kA, kB, kP };

// y and the strides that lead from its coordinates to rows of a and b.
struct Pairs {
  Dims dims;
  Dims a_strides;
  Dims b_strides;
};
Result<Pairs> pairs(const Node& n) {
  const Dims a = n.in(kA).dims;
  const Dims b = n.in(kB).dims;
  Dims a_batch = a;
  Dims b_batch = b;
  for (Dims* d : {&a_batch, &b_batch}) {
    d->erase(d->rank() - 1);
    d->erase(d->rank() - 1);
  }
  const auto batch = broadcast(a_batch, b_batch);
  if (!batch || a.back() != b.back()) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("x1 {} and x2 {} do not go together", to_string(a), to_string(b)));
  }
  Pairs p{*batch, broadcast_strides(a_batch, *batch), broadcast_strides(b_batch, *batch)};
  const int64_t width = a.back();
  const int64_t a_rows = a[a.rank() - 2];
  const int64_t b_rows = b[b.rank() - 2];
  for (size_t i = 0; i < batch->rank(); ++i) {
    p.a_strides[i] *= a_rows * width;
    p.b_strides[i] *= b_rows * width;
  }
  const auto push = [&](int64_t size, int64_t a_stride, int64_t b_stride) {
    p.dims.push_back(size);
    p.a_strides.push_back(a_stride);
    p.b_strides.push_back(b_stride);
  };
  push(a_rows, width, 0);
  push(b_rows, 0, width);
  return p;
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Pairs p, pairs(n));
  if (!(n.number(kP) >= 0))
    return n.fail(Code::kInvalidProgram, fmt::format("p: got {}", n.number(kP)));
  return s.set(p.dims);
}

// Some norms have a plain form.
std::string form_of(double p) {
  if (p == 0) return "count";
  if (p == 1) return "sum";
  if (p == 2) return "euclidean";
  return std::isinf(p) ? "largest" : "power";
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Pairs pair, pairs(n));
  const Tensor y = n.out();
  const double norm = n.number(kP);
  const shaders::DistanceParams params{
      .dims = packed_dims(pair.dims),
      .a_strides = packed_strides(pair.a_strides),
      .b_strides = packed_strides(pair.b_strides),
      .n = u32(y.numel()),
      .first = u32(static_cast<int64_t>(kMaxRank - pair.dims.rank())),
      .width = u32(n.in(kA).dims.back()),
      .p = std::isinf(norm) ? 0.0F : static_cast<float>(norm)};
  return p.dispatch(n, {.shader = &shaders::distance,
                        .options = {{"norm", form_of(norm)}},
                        .bind = {{"a", n.in(kA)}, {"b", n.in(kB)}, {"y", y}},
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

double distance(const HostTensor& a, int64_t i, const HostTensor& b, int64_t j, int64_t width,
                double p) {
  double sum = 0;
  for (int64_t k = 0; k < width; ++k) {
    const double d = std::fabs(a.number(i + k) - b.number(j + k));
    if (std::isinf(p)) {
      sum = std::isnan(d) || d > sum ? d : sum;
    } else {
      sum += p == 0 ? (d != 0 ? 1 : 0) : std::pow(d, p);
    }
  }
  return p == 0 || std::isinf(p) ? sum : std::pow(sum, 1 / p);
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Pairs pair, pairs(n));
  const HostTensor a = h.host(n.in(kA).id);
  const HostTensor b = h.host(n.in(kB).id);
  const HostTensor y = h.host(n.out_id());
  for_each_index<2>(pair.dims, {pair.a_strides, pair.b_strides},
                    [&](int64_t i, const std::array<int64_t, 2>& at) {
                      y.put(i, distance(a, at[0], b, at[1], a.dims.back(), n.number(kP)));
                    });
  return {};
}

constexpr Arg kArgs[] = {in("x1", kFloats, 2), in("x2", kFloats, 2), number("p"),
                         any("compute_mode"), out("y", kFloats)};
constexpr std::string_view kSpellings[] = {"aten::_cdist_forward.out"};

}  // namespace

void add_distance(std::vector<OpDef>& table) {
  table.push_back({.name = "aten._cdist_forward.default",
                   .spellings = kSpellings,
                   .args = kArgs,
                   .shape = shape,
                   .plan = plan,
                   .cpu = cpu});
}

}  // namespace pteryx::ops

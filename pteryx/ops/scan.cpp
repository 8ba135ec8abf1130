// Running sums along a dim. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/scan.h"

#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kX, kDim };

// x as [outer, extent, inner] around the scanned dim.
struct Rows {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};
Result<Rows> rows(const Node& n) {
  const Tensor x = n.in(kX);
  PTERYX_ASSIGN(const size_t dim, n.dim(kDim, x.rank()));
  Rows r;
  for (size_t d = 0; d < x.rank(); ++d)
    (d < dim ? r.outer : d == dim ? r.extent : r.inner) *= x.dims[d];
  return r;
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN([[maybe_unused]] const Rows r, rows(n));
  return s.set(n.in(kX).dims);
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Rows r, rows(n));
  if (r.extent == 0) return {};
  const shaders::ScanParams params{
      .rows = u32(r.outer * r.inner), .extent = u32(r.extent), .inner = u32(r.inner)};
  return p.dispatch(n, {.shader = &shaders::scan,
                        .bind = {{"x", n.in(kX)}, {"y", n.out(), Access::kElements}},
                        .params = bytes_of(params),
                        .grid = per_element(r.outer * r.inner, p.caps())});
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Rows r, rows(n));
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor y = h.host(n.out_id());
  for (int64_t row = 0; row < r.outer * r.inner; ++row) {
    int64_t at = (row / r.inner) * r.extent * r.inner + row % r.inner;
    double sum = 0;
    uint64_t wrapping = 0;
    for (int64_t k = 0; k < r.extent; ++k, at += r.inner) {
      if (is_float(y.dtype)) {
        y.put(at, sum += x.number(at));
      } else {
        y.put_integer(at, static_cast<int64_t>(wrapping += static_cast<uint64_t>(x.integer(at))));
      }
    }
  }
  return {};
}

constexpr Arg kArgs[] = {in("x"), number("dim"), any("dtype"), out("y")};
constexpr std::string_view kSpellings[] = {"aten::cumsum.out"};

}  // namespace

void add_scan(std::vector<OpDef>& table) {
  table.push_back({.name = "aten.cumsum.default",
                   .spellings = kSpellings,
                   .args = kArgs,
                   .shape = shape,
                   .plan = plan,
                   .cpu = cpu});
}

}  // namespace pteryx::ops

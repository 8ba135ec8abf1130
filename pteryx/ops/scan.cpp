// Running sums and products along a dim. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/scan.h"

#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kX, kDim };

struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  bool product;  // else a sum
};
const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

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
                        .options = {{"product", row(n).product ? 1 : 0}},
                        .variant = row(n).product ? "product" : "sum",
                        .bind = {{"x", n.in(kX)}, {"y", n.out()}},
                        .params = bytes_of(params),
                        .grid = per_element(r.outer * r.inner, p.caps())});
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Rows r, rows(n));
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor y = h.host(n.out_id());
  const bool product = row(n).product;
  for (int64_t i = 0; i < r.outer * r.inner; ++i) {
    int64_t at = (i / r.inner) * r.extent * r.inner + i % r.inner;
    double total = product ? 1 : 0;
    uint64_t wrapping = product ? 1 : 0;
    for (int64_t k = 0; k < r.extent; ++k, at += r.inner) {
      if (is_float(y.dtype)) {
        total = product ? total * x.number(at) : total + x.number(at);
        y.put(at, total);
      } else {
        const auto v = static_cast<uint64_t>(x.integer(at));
        wrapping = product ? wrapping * v : wrapping + v;
        y.put_integer(at, static_cast<int64_t>(wrapping));
      }
    }
  }
  return {};
}

constexpr Arg kArgs[] = {in("x"), number("dim"), any("dtype"), out("y")};

constexpr Row kRows[] = {
    {"aten.cumsum.default", {"aten::cumsum.out"}, false},
    {"aten.cumprod.default", {"aten::cumprod.out"}, true},
};

}  // namespace

void add_scan(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = kArgs,
                     .shape = shape,
                     .plan = plan,
                     .cpu = cpu,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

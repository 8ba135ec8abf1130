// Scalars read out of tensors: positions, conditions, `.item()`. SPDX-License-Identifier:
// BSD-3-Clause
#include <limits>

#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

using graph::ScalarKind;

ScalarKind result_kind(const Node& n) {
  const auto* s = std::get_if<graph::LiveScalar>(&n.graph()[n.out_id()]);
  return s == nullptr ? ScalarKind::kInt : s->kind;
}

Status no_shape(const Node&, Shapes&) { return {}; }

Status set_int32(const Node& n, int64_t v, Shapes& s) {
  if (v < std::numeric_limits<int32_t>::min() || v > std::numeric_limits<int32_t>::max()) {
    return n.fail(Code::kInvalidArgument, fmt::format("value {} does not fit 32 bits", v));
  }
  s.set_int(v);
  return {};
}

// [x, dim, index]: the element at `index` along `dim`, coordinate 0 in every other dim.
Status select_as_symint(const Node& n, const HostTensor& x, Shapes& s) {
  if (is_float(x.dtype)) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("x type: expected integers, got {}", name(x.dtype)));
  }
  if (x.numel() == 0)
    return n.fail(Code::kInvalidArgument, fmt::format("x {} is empty", to_string(x.dims)));
  PTERYX_ASSIGN(const size_t dim, n.dim(1, x.dims.rank()));
  PTERYX_ASSIGN(int64_t i, n.integer(2));
  const int64_t extent = x.dims.empty() ? 1 : x.dims[dim];
  if (i < -extent || i >= extent) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("index: expected {} to {}, got {}", -extent, extent - 1, i));
  }
  if (i < 0) i += extent;
  return set_int32(n, x.integer(x.dims.empty() ? 0 : i * contiguous_strides(x.dims)[dim]), s);
}

// A one-element tensor as a scalar of the result's kind; as a condition: true if all elements are.
Status item(const Node& n, const HostTensor& x, Shapes& s) {
  const ScalarKind kind = result_kind(n);
  if (kind == ScalarKind::kBool) {
    bool all = true;
    for (int64_t i = 0; i < x.numel(); ++i) all = all && x.number(i) != 0.0;
    s.set_scalar({kind, all ? 1 : 0, all ? 1.0 : 0.0});
    return {};
  }
  if (x.numel() != 1) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("x: expected one element, got {}", to_string(x.dims)));
  }
  const int64_t i = x.integer(0);
  s.set_scalar({kind, i, is_float(x.dtype) ? x.number(0) : static_cast<double>(i)});
  return {};
}

constexpr Arg kSelectArgs[] = {in("x"), number("dim"), number("index"), out_scalar("y")};
constexpr Arg kItemArgs[] = {in("x"), out_scalar("y")};
constexpr std::string_view kSelectSpellings[] = {"select_as_symint.default"};
constexpr std::string_view kItemSpellings[] = {"aten::_local_scalar_dense", "aten::item",
                                               "aten._local_scalar_dense.default"};

}  // namespace

void add_item(std::vector<OpDef>& table) {
  table.push_back({.name = "et_vk.select_as_symint.default",
                   .spellings = kSelectSpellings,
                   .args = kSelectArgs,
                   .shape = no_shape,
                   .item = select_as_symint,
                   .op_class = OpClass::kItem});
  table.push_back({.name = graph::kItemOp,
                   .spellings = kItemSpellings,
                   .args = kItemArgs,
                   .shape = no_shape,
                   .item = item,
                   .op_class = OpClass::kItem});
}

}  // namespace pteryx::ops

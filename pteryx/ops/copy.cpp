// Copies that may convert the element type and broadcast: dtype casts, copy_, and the copies
// inserted where a program's types and a delegate's differ.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/copy.h"

#include <algorithm>
#include <limits>

#include "pteryx/base/checked.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/raw.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

struct Row {
  std::string_view name;
  std::array<std::string_view, 2> spellings;
  std::span<const Arg> args;
  size_t source = 0;     // its position; the result has the dims of argument 0
  bool checked = false;  // i64 that does not fit the result's type is an error
};

constexpr Arg kDType = factory("dtype");
constexpr Arg kLayout = factory("layout");
constexpr Arg kDevice = factory("device");
constexpr Arg kPin = factory("pin_memory");
constexpr Arg kPlainArgs[] = {in("x"), out("y")};
constexpr Arg kCastArgs[] = {
    in("x"), kDType, kLayout, kDevice, kPin, any("non_blocking"), any("memory_format"), out("y")};
constexpr Arg kIntoArgs[] = {in("self"), in("src"), any("non_blocking"), out("y")};
constexpr Arg kInPlaceArgs[] = {mutated("self"), in("src"), any("non_blocking"),
                                out("y")};  // y is self
constexpr Arg kFillArgs[] = {in("self"), in("value"), out("y")};

constexpr Row kRows[] = {
    {graph::kCopyOp, {}, kPlainArgs, 0, true},
    {"aten._to_copy.default", {"aten::_to_copy.out"}, kCastArgs},
    {"dim_order_ops._to_dim_order_copy.default",
     {"dim_order_ops::_to_dim_order_copy.out"},
     kCastArgs},
    {"aten.copy.default", {"aten::copy.out"}, kIntoArgs, 1},
    {"aten.copy_.default", {"aten::copy_"}, kInPlaceArgs, 1},
    {"aten.fill.Tensor", {"aten::fill.Tensor_out"}, kFillArgs, 1},
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

Status shape(const Node& n, Shapes& s) {
  const Row& r = row(n);
  const Dims dims = n.in(0).dims;
  const Dims from = n.in(r.source).dims;
  const auto joined = broadcast(from, dims);
  if (!joined || *joined != dims) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("{} {} does not broadcast to {}", r.args[r.source].name,
                              to_string(from), to_string(dims)));
  }
  return s.set(dims);
}

Status plan(const Node& n, Plan& p) {
  const Tensor x = n.in(row(n).source);
  const Tensor y = n.out();
  if (x.dtype == y.dtype && x.numel() == y.numel()) return plan_raw_copy(n, p, x, y);
  const std::array<Dims, 1> strides = {broadcast_strides(x.dims, y.dims)};
  const Walk walk = x.numel() == y.numel() ? Walk{} : merge_dims(y.dims, strides);
  const shaders::CopyParams params{.dims = packed_dims(walk.dims),
                                   .strides = packed_strides(walk.strides[0]),
                                   .n = u32(y.numel()),
                                   .first = u32(static_cast<int64_t>(kMaxRank - walk.dims.rank()))};
  return p.dispatch(n, {.shader = &shaders::copy,
                        .options = {{"raw", x.dtype == y.dtype ? 1 : 0}},
                        .bind = {{"x", x}, {"y", y}},
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

bool holds(DType t, int64_t v) {
  switch (t) {
    case DType::kI32: return fits<int32_t>(v);
    case DType::kI16: return fits<int16_t>(v);
    case DType::kI8: return fits<int8_t>(v);
    case DType::kU8: return fits<uint8_t>(v);
    default: return true;
  }
}

// A float as an integer of at most 32 bits, as the GPU has it.
int64_t truncate(const HostTensor& x, int64_t i) {
  return std::clamp<int64_t>(x.integer(i), std::numeric_limits<int32_t>::min(),
                             std::numeric_limits<int32_t>::max());
}

Status cpu(const Node& n, const Host& h) {
  const Row& r = row(n);
  const HostTensor x = h.host(n.in(r.source).id);
  const HostTensor y = h.host(n.out_id());
  const int64_t items = y.numel();
  if (x.dtype == y.dtype && x.numel() == items) {
    cpu_raw_copy(x, y);
    return {};
  }
  if (r.checked && x.dtype == DType::kI64) {
    for (int64_t i = 0; i < items; ++i) {
      if (holds(y.dtype, x.integer(i))) continue;
      return n.fail(
          Code::kInvalidArgument,
          fmt::format("{} ({}): input value {} at index {} does not fit {}", r.args[r.source].name,
                      n.graph().label(n.in(r.source).id), x.integer(i), i, name(y.dtype)));
    }
  }
  const bool narrow = is_float(x.dtype) && has(kIntegers, y.dtype) && size_bytes(y.dtype) <= 4 &&
                      y.dtype != DType::kU32;
  const std::array<Dims, 1> strides = {broadcast_strides(x.dims, y.dims)};
  for_each_index<1>(y.dims, strides, [&](int64_t i, const std::array<int64_t, 1>& at) {
    if (narrow) {
      y.put_integer(i, truncate(x, at[0]));
    } else {
      y.copy(i, x, at[0]);
    }
  });
  return {};
}

}  // namespace

void add_copy(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan,
                     .cpu = decltype(OpDef::cpu)::everywhere(cpu),
                     .casts = r.source == 0,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

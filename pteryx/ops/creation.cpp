// Operators that make a tensor out of scalars: filled, counted up, the identity matrix. The element
// type is the result's.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/creation.h"

#include <algorithm>
#include <cmath>

#include "pteryx/ops/op.h"
#include "pteryx/ops/raw.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum class Size : uint8_t { kList, kLike, kRank0, kCount, kSquare, kMatrix };
enum class Content : uint8_t {
  kZeros,
  kOnes,
  kFirst,
  kSecond,
  kCount,
  kIdentity
};  // kFirst: argument 0 everywhere

struct Row {
  std::string_view name;
  std::array<std::string_view, 3> spellings;
  std::span<const Arg> args;
  Size size;
  Content content;
};

constexpr Arg kDType = factory("dtype");
constexpr Arg kLayout = factory("layout");
constexpr Arg kDevice = factory("device");
constexpr Arg kPin = factory("pin_memory");
constexpr Arg kFormat = any("memory_format");

constexpr Arg kSizeArgs[] = {ints("size"), kDType, kLayout, kDevice, kPin, out("y")};
constexpr Arg kSizeFormatArgs[] = {ints("size"), kDType, kLayout, kDevice, kPin, kFormat, out("y")};
constexpr Arg kSizeValueArgs[] = {ints("size"), number("value"), kDType, kLayout, kDevice,
                                  kPin,         out("y")};
constexpr Arg kLikeArgs[] = {in("x"), kDType, kLayout, kDevice, kPin, kFormat, out("y")};
constexpr Arg kLikeValueArgs[] = {in("x"), number("value"), kDType,  kLayout, kDevice,
                                  kPin,    kFormat,         out("y")};
constexpr Arg kFillArgs[] = {in("x"), number("value"), out("y")};
constexpr Arg kValueArgs[] = {number("value"), kDType, kLayout, kDevice, kPin, out("y")};
constexpr Arg kEndArgs[] = {number("end"), kDType, kLayout, kDevice, kPin, out("y")};
constexpr Arg kStartArgs[] = {number("start"), number("end"), kDType,  kLayout,
                              kDevice,         kPin,          out("y")};
constexpr Arg kStepArgs[] = {number("start"), number("end"), number("step"), kDType,
                             kLayout,         kDevice,       kPin,           out("y")};
constexpr Arg kSquareArgs[] = {number("n"), kDType, kLayout, kDevice, kPin, out("y")};
constexpr Arg kMatrixArgs[] = {number("n"), number("m"), kDType, kLayout, kDevice, kPin, out("y")};

// What is called empty is zero: results do not depend on what was in memory.
constexpr Row kRows[] = {
    {"aten.full.default", {"aten::full.out"}, kSizeValueArgs, Size::kList, Content::kSecond},
    {"aten.full_like.default",
     {"aten::full_like.out"},
     kLikeValueArgs,
     Size::kLike,
     Content::kSecond},
    {"aten.fill.Scalar", {"aten::fill.Scalar_out"}, kFillArgs, Size::kLike, Content::kSecond},
    {"aten.zeros.default", {"aten::zeros.out"}, kSizeArgs, Size::kList, Content::kZeros},
    {"aten.zeros_like.default", {"aten::zeros_like.out"}, kLikeArgs, Size::kLike, Content::kZeros},
    {"aten.ones.default", {"aten::ones.out"}, kSizeArgs, Size::kList, Content::kOnes},
    {"aten.ones_like.default", {"aten::ones_like.out"}, kLikeArgs, Size::kLike, Content::kOnes},
    {"aten.empty.memory_format",
     {"aten::empty.out", "dim_order_ops._empty_dim_order.default",
      "dim_order_ops::_empty_dim_order.out"},
     kSizeFormatArgs,
     Size::kList,
     Content::kZeros},
    {"aten.empty_like.default", {"aten::empty_like.out"}, kLikeArgs, Size::kLike, Content::kZeros},
    {"aten.scalar_tensor.default",
     {"aten::scalar_tensor.out"},
     kValueArgs,
     Size::kRank0,
     Content::kFirst},
    {"aten.arange.default", {"aten::arange.out"}, kEndArgs, Size::kCount, Content::kCount},
    {"aten.arange.start", {}, kStartArgs, Size::kCount, Content::kCount},
    {"aten.arange.start_step",
     {"aten::arange.start_out"},
     kStepArgs,
     Size::kCount,
     Content::kCount},
    {"aten.eye.default", {"aten::eye.out"}, kSquareArgs, Size::kSquare, Content::kIdentity},
    {"aten.eye.m", {"aten::eye.m_out"}, kMatrixArgs, Size::kMatrix, Content::kIdentity},
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

struct Count {
  Scalar start{.kind = graph::ScalarKind::kInt, .i = 0, .d = 0.0};
  Scalar end;
  Scalar step{.kind = graph::ScalarKind::kInt, .i = 1, .d = 1.0};
};
Count count(const Node& n) {
  const std::span<const Arg> args = row(n).args;
  Count c;
  if (args.data() == kEndArgs) {
    c.end = n.scalar(0);
    return c;
  }
  c.start = n.scalar(0);
  c.end = n.scalar(1);
  if (args.data() == kStepArgs) c.step = n.scalar(2);
  return c;
}

// An integer result counts in integers: start and step lose their fractions.
int64_t integral(const Scalar& s) {
  if (s.kind != graph::ScalarKind::kDouble) return s.i;
  return static_cast<int64_t>(std::clamp(s.d, -0x1p53, 0x1p53));
}

// Exact while end - start is below 2^53.
Result<int64_t> length(const Node& n) {
  const Count c = count(n);
  const double exact = (c.end.d - c.start.d) / c.step.d;
  if (c.step.d == 0.0 || !(exact >= 0.0 && exact <= 0x1p53)) {
    return n.fail(Code::kInvalidArgument, fmt::format("no range from {} to {} in steps of {}",
                                                      c.start.d, c.end.d, c.step.d));
  }
  return static_cast<int64_t>(std::ceil(exact));
}

Result<Dims> dims(const Node& n) {
  switch (row(n).size) {
    case Size::kList: return n.ints(0);
    case Size::kLike: return n.in(0).dims;
    case Size::kRank0: return Dims{};
    case Size::kCount: {
      PTERYX_ASSIGN(const int64_t items, length(n));
      return Dims{items};
    }
    case Size::kSquare:
    case Size::kMatrix: {
      PTERYX_ASSIGN(const int64_t rows, n.integer(0));
      PTERYX_ASSIGN(const int64_t columns, n.integer(row(n).size == Size::kSquare ? 0 : 1));
      return Dims{rows, columns};
    }
  }
  return Dims{};
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Dims d, dims(n));
  for (const int64_t v : d) {
    if (v < 0)
      return n.fail(Code::kInvalidArgument,
                    fmt::format("size {} has a negative dim", to_string(d)));
  }
  return s.set(d);
}

Scalar fill(const Node& n) {
  switch (row(n).content) {
    case Content::kFirst: return n.scalar(0);
    case Content::kSecond: return n.scalar(1);
    case Content::kOnes: return {graph::ScalarKind::kInt, 1, 1.0};
    default: return {};
  }
}

Status plan(const Node& n, Plan& p) {
  const Tensor y = n.out();
  const Content content = row(n).content;
  shaders::CreationParams params{.n = u32(y.numel()), .width = u32(y.dim(-1))};
  std::string_view content_word = "fill";
  if (content == Content::kCount) {
    const Count c = count(n);
    params.start = static_cast<float>(c.start.d);
    params.step = static_cast<float>(c.step.d);
    params.start_int = static_cast<int32_t>(integral(c.start));
    params.step_int = static_cast<int32_t>(integral(c.step));
    content_word = "count";
  } else if (content == Content::kIdentity) {
    content_word = "identity";
  } else {
    params.bits = element_bits(fill(n).d, y.dtype);
  }
  return p.dispatch(n, {.shader = &shaders::creation,
                        .options = {{"content", content_word}},
                        .variant = n.def().name,
                        .bind = {{"y", y}},
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

Status cpu(const Node& n, const Host& h) {
  const HostTensor y = h.host(n.out_id());
  const int64_t items = y.numel();
  if (row(n).content == Content::kCount) {
    const Count c = count(n);
    for (int64_t i = 0; i < items; ++i) {
      if (is_float(y.dtype)) {
        y.put(i, c.start.d + static_cast<double>(i) * c.step.d);
      } else {
        y.put_integer(i, integral(c.start) + i * integral(c.step));
      }
    }
    return {};
  }
  if (row(n).content == Content::kIdentity) {
    const int64_t width = y.dims[1];
    for (int64_t i = 0; i < items; ++i) y.put_integer(i, i / width == i % width ? 1 : 0);
    return {};
  }
  const Scalar value = fill(n);
  for (int64_t i = 0; i < items; ++i) y.put_scalar(i, value);
  return {};
}

}  // namespace

void add_creation(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan,
                     .cpu = cpu,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

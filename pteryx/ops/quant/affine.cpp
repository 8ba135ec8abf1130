// Numbers to codes and back, with a scale and a zero point for the whole tensor, each row, each
// channel or each block.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/affine.h"

#include <algorithm>
#include <cmath>

#include "pteryx/ops/op.h"
#include "pteryx/ops/strided.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum class Form : uint8_t { kNumber, kTensor, kToken, kChannel, kBlock };
struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  std::span<const Arg> args;
  Form form;
  bool to_codes;
};
const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

// Where arguments are: numbers or tensors for scale and zero point, then the range of codes.
constexpr size_t kX = 0;
size_t scale_arg(const Node& n) { return row(n).form == Form::kBlock ? 2 : 1; }
size_t zero_arg(const Node& n) { return scale_arg(n) + 1; }
size_t qmin_arg(const Node& n) {
  const Form f = row(n).form;
  return f == Form::kBlock ? 5 : (f == Form::kChannel ? 4 : 3);
}
constexpr size_t kAxis = 3;
constexpr size_t kBlockSize = 1;

bool tensors(const Node& n) { return row(n).form != Form::kNumber; }
bool has_zero_tensor(const Node& n) { return tensors(n) && n.has(zero_arg(n)); }

// Element c of x takes entry sum of c_d / block_d * stride_d of scales.
struct Blocks {
  Dims block;
  Dims strides;
  int64_t count = 1;
};

Result<Blocks> blocks(const Node& n) {
  const Dims& x = n.in(kX).dims;
  Blocks b{.block = x, .strides = Dims::filled(x.rank(), 0)};
  for (int64_t& d : b.block) d = std::max<int64_t>(d, 1);
  if (row(n).form == Form::kToken) {
    for (size_t d = 0; d + 1 < x.rank(); ++d) b.block[d] = 1;
  } else if (row(n).form == Form::kChannel) {
    PTERYX_ASSIGN(const size_t axis, n.dim(kAxis, x.rank()));
    if (!x.empty()) b.block[axis] = 1;
  } else if (row(n).form == Form::kBlock) {
    PTERYX_ASSIGN(b.block, n.ints(kBlockSize));
    bool fits = b.block.rank() == x.rank();
    for (size_t d = 0; fits && d < x.rank(); ++d) fits = b.block[d] > 0 && x[d] % b.block[d] == 0;
    if (!fits) {
      return n.fail(Code::kInvalidArgument, fmt::format("block_size {} does not divide x {}",
                                                        to_string(b.block), to_string(x)));
    }
  }
  for (size_t d = x.rank(); d-- > 0;) {
    const int64_t along = x[d] / b.block[d];
    if (along > 1) b.strides[d] = b.count;
    b.count *= std::max<int64_t>(along, 1);
  }
  return b;
}

Status check_count(const Node& n, size_t arg, int64_t count) {
  const Tensor t = n.in(arg);
  if (t.numel() == count) return {};
  return n.mismatch(arg, "shape",
                    fmt::format("{} elements for x {}", count, to_string(n.in(kX).dims)),
                    to_string(t.dims));
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Blocks b, blocks(n));
  if (tensors(n) && n.in(kX).numel() > 0) {
    PTERYX_TRY(check_count(n, scale_arg(n), b.count));
    if (has_zero_tensor(n)) PTERYX_TRY(check_count(n, zero_arg(n), b.count));
  }
  return s.set(n.in(kX).dims);
}

// The range of codes; without one, that of their type.
struct Range {
  double lo = 0;
  double hi = 0;
};
Range range(const Node& n) {
  const DType t = n.out().dtype;
  const double span = std::ldexp(1.0, static_cast<int>(size_bytes(t)) * 8);
  const bool is_unsigned = t == DType::kU8 || t == DType::kU16 || t == DType::kU32;
  return {n.number_or(qmin_arg(n), is_unsigned ? 0 : -span / 2),
          n.number_or(qmin_arg(n) + 1, is_unsigned ? span - 1 : span / 2 - 1)};
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Blocks b, blocks(n));
  const Tensor x = n.in(kX);
  const Tensor y = n.out();
  const Range r = row(n).to_codes ? range(n) : Range{};
  shaders::AffineParams params{
      .dims = packed_dims(x.dims),
      .blocks = packed_dims(b.block),
      .strides = packed_strides(b.strides),
      .n = u32(x.numel()),
      .first = u32(static_cast<int64_t>(kMaxRank - x.rank())),
      .scale = tensors(n) ? 1.0F : static_cast<float>(n.number(scale_arg(n))),
      .zero = tensors(n) ? 0.0F : static_cast<float>(n.number(zero_arg(n))),
      .qmin = static_cast<float>(r.lo),
      .qmax = static_cast<float>(r.hi)};
  std::vector<Bind> bind = {{"x", x}};
  if (tensors(n)) bind.push_back({"scales", n.in(scale_arg(n))});
  if (has_zero_tensor(n)) bind.push_back({"zeros", n.in(zero_arg(n))});
  bind.push_back({"y", y});
  return p.dispatch(n, {.shader = &shaders::affine,
                        .options = {{"to_codes", row(n).to_codes ? 1 : 0},
                                    {"has_scales", tensors(n) ? 1 : 0},
                                    {"has_zeros", has_zero_tensor(n) ? 1 : 0}},
                        .variant = row(n).to_codes ? "to_codes" : "to_numbers",
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

// Rounding is done in f32, as PyTorch does it.
Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Blocks b, blocks(n));
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor y = h.host(n.out_id());
  const Range r = row(n).to_codes ? range(n) : Range{};
  const HostTensor scales = tensors(n) ? h.host(n.in(scale_arg(n)).id) : x;
  const HostTensor zeros = has_zero_tensor(n) ? h.host(n.in(zero_arg(n)).id) : x;
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t at = 0;
    int64_t rest = i;
    for (size_t d = x.dims.rank(); d-- > 0;) {
      at += rest % x.dims[d] / b.block[d] * b.strides[d];
      rest /= x.dims[d];
    }
    const double scale = tensors(n) ? scales.number(at) : n.number(scale_arg(n));
    const double zero =
        has_zero_tensor(n) ? zeros.number(at) : (tensors(n) ? 0.0 : n.number(zero_arg(n)));
    if (row(n).to_codes) {
      const float rounded =
          std::nearbyint(static_cast<float>(x.number(i)) * (1.0F / static_cast<float>(scale)));
      y.put(i, std::clamp(static_cast<double>(rounded) + zero, r.lo, r.hi));
    } else {
      y.put(i, (x.number(i) - zero) * scale);
    }
  }
  return {};
}

constexpr Arg kScaleArg = in("scale", kFloats);
constexpr Arg kZeroArg{.name = "zero_point", .optional = true, .index = true};
constexpr Arg kQuantizeNumber[] = {in("x", kFloats),    number("scale"),     number("zero_point"),
                                   number("quant_min"), number("quant_max"), any("dtype"),
                                   out("y", kIntegers)};
constexpr Arg kDequantizeNumber[] = {in("x", kIntegers), number("scale"),  number("zero_point"),
                                     any("quant_min"),   any("quant_max"), any("dtype"),
                                     any("out_dtype"),   out("y", kFloats)};
// By tensor or by row.
constexpr Arg kQuantize[] = {in("x", kFloats),    kScaleArg,           kZeroArg,
                             number("quant_min"), number("quant_max"), any("dtype"),
                             out("y", kIntegers)};
constexpr Arg kDequantize[] = {in("x", kIntegers), kScaleArg,        kZeroArg,
                               any("quant_min"),   any("quant_max"), any("dtype"),
                               any("out_dtype"),   out("y", kFloats)};
constexpr Arg kQuantizeChannel[] = {in("x", kFloats), kScaleArg,           kZeroArg,
                                    number("axis"),   number("quant_min"), number("quant_max"),
                                    any("dtype"),     out("y", kIntegers)};
constexpr Arg kDequantizeChannel[] = {in("x", kIntegers), kScaleArg,        kZeroArg,
                                      number("axis"),     any("quant_min"), any("quant_max"),
                                      any("dtype"),       any("out_dtype"), out("y", kFloats)};
constexpr Arg kQuantizeBlock[] = {in("x", kFloats),
                                  ints("block_size"),
                                  kScaleArg,
                                  kZeroArg,
                                  any("dtype"),
                                  optional_number("quant_min"),
                                  optional_number("quant_max"),
                                  out("y", kIntegers)};
constexpr Arg kDequantizeBlock[] = {in("x", kIntegers), ints("block_size"), kScaleArg,
                                    kZeroArg,           any("dtype"),       any("quant_min"),
                                    any("quant_max"),   any("out_dtype"),   out("y", kFloats)};

constexpr Row kRows[] = {
    {"quantized_decomposed.quantize_per_tensor.default",
     {"quantized_decomposed::quantize_per_tensor.out"},
     kQuantizeNumber,
     Form::kNumber,
     true},
    {"quantized_decomposed.dequantize_per_tensor.default",
     {"quantized_decomposed::dequantize_per_tensor.out"},
     kDequantizeNumber,
     Form::kNumber,
     false},
    {"quantized_decomposed.quantize_per_tensor.tensor",
     {"quantized_decomposed::quantize_per_tensor.Tensor_out"},
     kQuantize,
     Form::kTensor,
     true},
    {"quantized_decomposed.dequantize_per_tensor.tensor",
     {"quantized_decomposed::dequantize_per_tensor.Tensor_out"},
     kDequantize,
     Form::kTensor,
     false},
    {"quantized_decomposed.quantize_per_token.default",
     {"quantized_decomposed::quantize_per_token.out"},
     kQuantize,
     Form::kToken,
     true},
    {"quantized_decomposed.dequantize_per_token.default",
     {"quantized_decomposed::dequantize_per_token.out"},
     kDequantize,
     Form::kToken,
     false},
    {"quantized_decomposed.quantize_per_channel.default",
     {"quantized_decomposed::quantize_per_channel.out"},
     kQuantizeChannel,
     Form::kChannel,
     true},
    {"quantized_decomposed.dequantize_per_channel.default",
     {"quantized_decomposed::dequantize_per_channel.out"},
     kDequantizeChannel,
     Form::kChannel,
     false},
    {"torchao.quantize_affine.default",
     {"torchao::quantize_affine.out"},
     kQuantizeBlock,
     Form::kBlock,
     true},
    {"torchao.dequantize_affine.default",
     {"torchao::dequantize_affine.out"},
     kDequantizeBlock,
     Form::kBlock,
     false},
};

}  // namespace

void add_affine(std::vector<OpDef>& table) {
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

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/binary_rows.h"

#include <cmath>

namespace pteryx::ops {
namespace {

using Form = BinaryForm;
using Row = BinaryRow;

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(0ULL - static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
int64_t trunc_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? static_cast<int64_t>(0ULL - static_cast<uint64_t>(a)) : a / b;
}
int64_t floor_mod(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
double floor_mod_f(double a, double b) {
  const double r = std::fmod(a, b);
  return (r != 0.0 && (r < 0.0) != (b < 0.0)) ? r + b : r;
}
int64_t int_pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : (a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
  uint64_t r = 1;
  for (auto base = static_cast<uint64_t>(a); b > 0; b >>= 1, base *= base) {
    if ((b & 1) != 0) r *= base;
  }
  return static_cast<int64_t>(r);
}
int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrap_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

// One rule for doubles and integers alike.
struct Eq {
  template <typename T>
  static T run(T a, T b) {
    return a == b ? 1 : 0;
  }
};
struct Ne {
  template <typename T>
  static T run(T a, T b) {
    return a != b ? 1 : 0;
  }
};
struct Lt {
  template <typename T>
  static T run(T a, T b) {
    return a < b ? 1 : 0;
  }
};
struct Le {
  template <typename T>
  static T run(T a, T b) {
    return a <= b ? 1 : 0;
  }
};
struct Gt {
  template <typename T>
  static T run(T a, T b) {
    return a > b ? 1 : 0;
  }
};
struct Ge {
  template <typename T>
  static T run(T a, T b) {
    return a >= b ? 1 : 0;
  }
};
struct And {
  template <typename T>
  static T run(T a, T b) {
    return a != 0 && b != 0 ? 1 : 0;
  }
};
struct Or {
  template <typename T>
  static T run(T a, T b) {
    return a != 0 || b != 0 ? 1 : 0;
  }
};
struct Xor {
  template <typename T>
  static T run(T a, T b) {
    return (a != 0) != (b != 0) ? 1 : 0;
  }
};
struct Min {
  template <typename T>
  static T run(T a, T b) {
    return a != a || a < b ? a : b;
  }
};
struct Max {
  template <typename T>
  static T run(T a, T b) {
    return a != a || a > b ? a : b;
  }
};

template <typename Op>
constexpr Row both(std::string_view name, std::string_view spelling, Form form,
                   std::string_view wgsl) {
  return {
      name, {spelling}, form, wgsl, wgsl, &Op::template run<double>, &Op::template run<int64_t>};
}

double add_f(double a, double b) { return a + b; }
double sub_f(double a, double b) { return a - b; }
double rsub_f(double a, double b) { return b - a; }
double mul_f(double a, double b) { return a * b; }
double div_f(double a, double b) { return a / b; }
double floor_div_f(double a, double b) { return std::floor(a / b); }
double trunc_div_f(double a, double b) { return std::trunc(a / b); }
double pow_f(double a, double b) { return std::pow(a, b); }
double rpow_f(double a, double b) { return std::pow(b, a); }
double atan2_f(double a, double b) { return std::atan2(a, b); }
double silu_mul_f(double a, double b) { return a / (1.0 + std::exp(-a)) * b; }
double fmod_f(double a, double b) { return std::fmod(a, b); }
int64_t and_i(int64_t a, int64_t b) { return a & b; }
int64_t or_i(int64_t a, int64_t b) { return a | b; }
int64_t xor_i(int64_t a, int64_t b) { return a ^ b; }
int64_t shl_i(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
int64_t shr_i(int64_t a, int64_t b) { return b < 0 || b > 63 ? (a < 0 ? -1 : 0) : a >> b; }
int64_t rsub_i(int64_t a, int64_t b) { return wrap_sub(b, a); }
int64_t rpow_i(int64_t a, int64_t b) { return int_pow(b, a); }
int64_t trunc_mod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

constexpr std::string_view kFloorMod = "a - b * floor(a / b)";
constexpr std::string_view kIntFloorMod =
    "select(a % b, a % b + b, a % b != 0 && ((a % b) < 0) != (b < 0))";
constexpr std::string_view kPow = "power(a, b)";

// {name, `.out` spelling, form, f32, i32, host}. add and sub: alpha is folded into b before apply.
constexpr Row kRows[] = {
    {"aten.add.Tensor", {"aten::add.out"}, Form::kTensorAlpha, "a + b", "a + b", add_f, wrap_add},
    {"aten.sub.Tensor", {"aten::sub.out"}, Form::kTensorAlpha, "a - b", "a - b", sub_f, wrap_sub},
    {"aten.mul.Tensor", {"aten::mul.out"}, Form::kTensor, "a * b", "a * b", mul_f, wrap_mul},
    {"aten.div.Tensor", {"aten::div.out"}, Form::kTensor, "a / b", "a / b", div_f, trunc_div},
    {"aten.div.Tensor_mode", {"aten::div.out_mode"}, Form::kTensorMode, "", "", nullptr, nullptr},
    {"aten.floor_divide.default",
     {"aten::floor_divide.out"},
     Form::kTensor,
     "floor(a / b)",
     "floor_div(a, b)",
     floor_div_f,
     floor_div},
    {"aten.remainder.Tensor",
     {"aten::remainder.Tensor_out"},
     Form::kTensor,
     kFloorMod,
     kIntFloorMod,
     floor_mod_f,
     floor_mod},
    {"aten.fmod.Tensor",
     {"aten::fmod.Tensor_out"},
     Form::kTensor,
     "a - b * trunc(a / b)",
     "a % b",
     fmod_f,
     trunc_mod},
    {"aten.pow.Tensor_Tensor",
     {"aten::pow.Tensor_Tensor_out"},
     Form::kTensor,
     kPow,
     "int_pow(a, b)",
     pow_f,
     int_pow},
    {"pteryx.silu_mul",
     {},
     Form::kTensor,
     "a / (1.0 + exp(min(-a, 88.0))) * b",
     "a",
     silu_mul_f,
     nullptr},
    {"aten.atan2.default",
     {"aten::atan2.out"},
     Form::kTensor,
     "atan2(a, b)",
     "a",
     atan2_f,
     nullptr},
    both<Min>("aten.minimum.default", "aten::minimum.out", Form::kTensor, "min(a, b)"),
    both<Max>("aten.maximum.default", "aten::maximum.out", Form::kTensor, "max(a, b)"),
    both<Eq>("aten.eq.Tensor", "aten::eq.Tensor_out", Form::kTensor,
             "select(ct(0), ct(1), a == b)"),
    both<Ne>("aten.ne.Tensor", "aten::ne.Tensor_out", Form::kTensor,
             "select(ct(0), ct(1), a != b)"),
    both<Lt>("aten.lt.Tensor", "aten::lt.Tensor_out", Form::kTensor, "select(ct(0), ct(1), a < b)"),
    both<Le>("aten.le.Tensor", "aten::le.Tensor_out", Form::kTensor,
             "select(ct(0), ct(1), a <= b)"),
    both<Gt>("aten.gt.Tensor", "aten::gt.Tensor_out", Form::kTensor, "select(ct(0), ct(1), a > b)"),
    both<Ge>("aten.ge.Tensor", "aten::ge.Tensor_out", Form::kTensor,
             "select(ct(0), ct(1), a >= b)"),
    both<And>("aten.logical_and.default", "aten::logical_and.out", Form::kTensor,
              "select(ct(0), ct(1), a != 0 && b != 0)"),
    both<Or>("aten.logical_or.default", "aten::logical_or.out", Form::kTensor,
             "select(ct(0), ct(1), a != 0 || b != 0)"),
    both<Xor>("aten.logical_xor.default", "aten::logical_xor.out", Form::kTensor,
              "select(ct(0), ct(1), (a != 0) != (b != 0))"),
    {"aten.bitwise_and.Tensor",
     {"aten::bitwise_and.Tensor_out"},
     Form::kTensor,
     "a",
     "a & b",
     nullptr,
     and_i},
    {"aten.bitwise_or.Tensor",
     {"aten::bitwise_or.Tensor_out"},
     Form::kTensor,
     "a",
     "a | b",
     nullptr,
     or_i},
    {"aten.bitwise_xor.Tensor",
     {"aten::bitwise_xor.Tensor_out"},
     Form::kTensor,
     "a",
     "a ^ b",
     nullptr,
     xor_i},
    {"aten.bitwise_left_shift.Tensor",
     {"aten::bitwise_left_shift.Tensor_out"},
     Form::kTensor,
     "a",
     "a << u32(b)",
     nullptr,
     shl_i},
    {"aten.bitwise_right_shift.Tensor",
     {"aten::bitwise_right_shift.Tensor_out"},
     Form::kTensor,
     "a",
     "a >> u32(b)",
     nullptr,
     shr_i},
    {"aten.add.Scalar",
     {"aten::add.Scalar_out"},
     Form::kScalarAlpha,
     "a + b",
     "a + b",
     add_f,
     wrap_add},
    {"aten.sub.Scalar",
     {"aten::sub.Scalar_out"},
     Form::kScalarAlpha,
     "a - b",
     "a - b",
     sub_f,
     wrap_sub},
    {"aten.rsub.Scalar",
     {"aten::rsub.Scalar_out"},
     Form::kScalarAlpha,
     "b - a",
     "b - a",
     rsub_f,
     rsub_i},
    {"aten.mul.Scalar", {"aten::mul.Scalar_out"}, Form::kScalar, "a * b", "a * b", mul_f, wrap_mul},
    {"aten.div.Scalar",
     {"aten::div.Scalar_out"},
     Form::kScalar,
     "a / b",
     "a / b",
     div_f,
     trunc_div},
    {"aten.div.Scalar_mode",
     {"aten::div.Scalar_mode_out"},
     Form::kScalarMode,
     "",
     "",
     nullptr,
     nullptr},
    {"aten.remainder.Scalar",
     {"aten::remainder.Scalar_out"},
     Form::kScalar,
     kFloorMod,
     kIntFloorMod,
     floor_mod_f,
     floor_mod},
    {"aten.fmod.Scalar",
     {"aten::fmod.Scalar_out"},
     Form::kScalar,
     "a - b * trunc(a / b)",
     "a % b",
     fmod_f,
     trunc_mod},
    {"aten.pow.Tensor_Scalar",
     {"aten::pow.Tensor_Scalar_out"},
     Form::kScalar,
     kPow,
     "int_pow(a, b)",
     pow_f,
     int_pow},
    {"aten.pow.Scalar",
     {"aten::pow.Scalar_out"},
     Form::kScalarFirst,
     "power(b, a)",
     "int_pow(b, a)",
     rpow_f,
     rpow_i},
    both<Eq>("aten.eq.Scalar", "aten::eq.Scalar_out", Form::kScalar,
             "select(ct(0), ct(1), a == b)"),
    both<Ne>("aten.ne.Scalar", "aten::ne.Scalar_out", Form::kScalar,
             "select(ct(0), ct(1), a != b)"),
    both<Lt>("aten.lt.Scalar", "aten::lt.Scalar_out", Form::kScalar, "select(ct(0), ct(1), a < b)"),
    both<Le>("aten.le.Scalar", "aten::le.Scalar_out", Form::kScalar,
             "select(ct(0), ct(1), a <= b)"),
    both<Gt>("aten.gt.Scalar", "aten::gt.Scalar_out", Form::kScalar, "select(ct(0), ct(1), a > b)"),
    both<Ge>("aten.ge.Scalar", "aten::ge.Scalar_out", Form::kScalar,
             "select(ct(0), ct(1), a >= b)"),
    {"aten.bitwise_and.Scalar",
     {"aten::bitwise_and.Scalar_out"},
     Form::kScalar,
     "a",
     "a & b",
     nullptr,
     and_i},
    {"aten.bitwise_or.Scalar",
     {"aten::bitwise_or.Scalar_out"},
     Form::kScalar,
     "a",
     "a | b",
     nullptr,
     or_i},
    {"aten.bitwise_xor.Scalar",
     {"aten::bitwise_xor.Scalar_out"},
     Form::kScalar,
     "a",
     "a ^ b",
     nullptr,
     xor_i},
};

}  // namespace

std::span<const BinaryRow> binary_rows() { return kRows; }

std::optional<BinaryRow> rounded_division(const BinaryRow& r, std::string_view mode) {
  if (mode.empty()) return Row{r.name, r.spellings, r.form, "a / b", "a / b", div_f, trunc_div};
  if (mode == "floor")
    return Row{r.name,      r.spellings, r.form, "floor(a / b)", "floor_div(a, b)",
               floor_div_f, floor_div};
  if (mode == "trunc")
    return Row{r.name, r.spellings, r.form, "trunc(a / b)", "a / b", trunc_div_f, trunc_div};
  return std::nullopt;
}

}  // namespace pteryx::ops

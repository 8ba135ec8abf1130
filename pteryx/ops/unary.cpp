// Elementwise operators of one operand, some with scalars: activations, rounding, elementary
// functions.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/unary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pteryx/ops/elementwise_fast.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum class Form : uint8_t {
  kPlain,
  kBits,      // bool and integers only
  kText,      // a string picks the rule
  kOne,       // scalars a, b, c
  kOptional,  // a; -1 when None
  kTwo,
  kBounds,  // a and b; open when None
  kThree,
};

using Scalars = std::array<double, 3>;
using P = const Scalars&;
using Ints = const std::array<int64_t, 2>&;

struct Row {
  std::string_view name;
  std::string_view spelling;
  Form form = Form::kPlain;
  std::string_view f32;  // WGSL over x: f32 and params.a, b, c
  std::string_view i32;  // over x: i32 and params.a_int, b_int; empty: computed in floats
  double (*host_f)(double, P) = nullptr;
  int64_t (*host_i)(int64_t, Ints) = nullptr;
};

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double clamp(double x, double lo, double hi) {
  const double v = x < lo ? lo : x;
  return v > hi ? hi : v;
}
int64_t same(int64_t x, Ints) { return x; }
int64_t negate(int64_t x, Ints) { return static_cast<int64_t>(0ULL - static_cast<uint64_t>(x)); }
int64_t clamp_int(int64_t x, Ints p) { return std::min(std::max(x, p[0]), p[1]); }

constexpr std::string_view kClamp = "at_most(at_least(x, params.a), params.b)";
constexpr std::string_view kClampInt = "min(max(x, params.a_int), params.b_int)";
constexpr std::string_view kNot = "select(ct(0), ct(1), x == 0)";

// The rules that gelu's `approximate` picks from, and bitwise_not of bool.
constexpr Row kGeluErf = {
    "gelu",       "", Form::kText,
    "gelu_of(x)", "", [](double x, P) { return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5))); }};
constexpr Row kGeluTanh = {"gelu_tanh", "", Form::kText, "gelu_tanh_of(x)", "", [](double x, P) {
                             const double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
                             return 0.5 * x * (1 + std::tanh(inner));
                           }};
constexpr Row kNotBool = {
    "not", "", Form::kBits, kNot, kNot, nullptr, [](int64_t x, Ints) -> int64_t { return x == 0; }};

constexpr Row kRows[] = {
    {"aten.abs.default", "aten::abs.out", Form::kPlain, "abs(x)", "abs(x)",
     [](double x, P) { return std::fabs(x); },
     [](int64_t x, Ints p) { return x < 0 ? negate(x, p) : x; }},
    {"aten.neg.default", "aten::neg.out", Form::kPlain, "-x", "-x", [](double x, P) { return -x; },
     negate},
    {"aten.sign.default", "aten::sign.out", Form::kPlain,
     "select(select(0.0, 1.0, x > 0.0), -1.0, x < 0.0)", "sign(x)",
     [](double x, P) { return x > 0 ? 1.0 : (x < 0 ? -1.0 : 0.0); },
     [](int64_t x, Ints) -> int64_t { return x > 0 ? 1 : (x < 0 ? -1 : 0); }},
    {"aten.round.default", "aten::round.out", Form::kPlain, "round(x)", "x",
     [](double x, P) { return std::nearbyint(x); }, same},
    {"aten.floor.default", "aten::floor.out", Form::kPlain, "floor(x)", "x",
     [](double x, P) { return std::floor(x); }, same},
    {"aten.ceil.default", "aten::ceil.out", Form::kPlain, "ceil(x)", "x",
     [](double x, P) { return std::ceil(x); }, same},
    {"aten.trunc.default", "aten::trunc.out", Form::kPlain, "trunc(x)", "x",
     [](double x, P) { return std::trunc(x); }, same},
    {"aten.sqrt.default", "aten::sqrt.out", Form::kPlain, "sqrt(x)", "",
     [](double x, P) { return std::sqrt(x); }},
    {"aten.rsqrt.default", "aten::rsqrt.out", Form::kPlain, "inverseSqrt(x)", "",
     [](double x, P) { return 1.0 / std::sqrt(x); }},
    {"aten.reciprocal.default", "aten::reciprocal.out", Form::kPlain, "1.0 / x", "",
     [](double x, P) { return 1.0 / x; }},
    {"aten.exp.default", "aten::exp.out", Form::kPlain, "exp_of(x)", "",
     [](double x, P) { return std::exp(x); }},
    {"aten.exp2.default", "aten::exp2.out", Form::kPlain,
     "select(exp2(at_most(x, 127.99999)), infinity(), x >= 128.0)", "",
     [](double x, P) { return std::exp2(x); }},
    {"aten.expm1.default", "aten::expm1.out", Form::kPlain, "expm1_of(x)", "",
     [](double x, P) { return std::expm1(x); }},
    {"aten.log.default", "aten::log.out", Form::kPlain, "log_of(x)", "",
     [](double x, P) { return std::log(x); }},
    {"aten.log2.default", "aten::log2.out", Form::kPlain, "log2_of(x)", "",
     [](double x, P) { return std::log2(x); }},
    {"aten.log10.default", "aten::log10.out", Form::kPlain, "log2_of(x) * 0.30102999566", "",
     [](double x, P) { return std::log10(x); }},
    {"aten.log1p.default", "aten::log1p.out", Form::kPlain, "log1p_of(x)", "",
     [](double x, P) { return std::log1p(x); }},
    {"aten.sin.default", "aten::sin.out", Form::kPlain, "sin_cos(x).x", "",
     [](double x, P) { return std::sin(x); }},
    {"aten.cos.default", "aten::cos.out", Form::kPlain, "sin_cos(x).y", "",
     [](double x, P) { return std::cos(x); }},
    {"aten.tan.default", "aten::tan.out", Form::kPlain, "tan_of(x)", "",
     [](double x, P) { return std::tan(x); }},
    {"aten.asin.default", "aten::asin.out", Form::kPlain, "asin_of(x)", "",
     [](double x, P) { return std::asin(x); }},
    {"aten.acos.default", "aten::acos.out", Form::kPlain, "acos_of(x)", "",
     [](double x, P) { return std::acos(x); }},
    {"aten.atan.default", "aten::atan.out", Form::kPlain, "atan_of(x)", "",
     [](double x, P) { return std::atan(x); }},
    {"aten.sinh.default", "aten::sinh.out", Form::kPlain, "sinh_of(x)", "",
     [](double x, P) { return std::sinh(x); }},
    {"aten.cosh.default", "aten::cosh.out", Form::kPlain, "cosh_of(x)", "",
     [](double x, P) { return std::cosh(x); }},
    {"aten.tanh.default", "aten::tanh.out", Form::kPlain, "tanh_of(x)", "",
     [](double x, P) { return std::tanh(x); }},
    {"aten.asinh.default", "aten::asinh.out", Form::kPlain, "asinh_of(x)", "",
     [](double x, P) { return std::asinh(x); }},
    {"aten.acosh.default", "aten::acosh.out", Form::kPlain, "acosh_of(x)", "",
     [](double x, P) { return std::acosh(x); }},
    {"aten.atanh.default", "aten::atanh.out", Form::kPlain, "atanh_of(x)", "",
     [](double x, P) { return std::atanh(x); }},
    {"aten.erf.default", "aten::erf.out", Form::kPlain, "erf_of(x)", "",
     [](double x, P) { return std::erf(x); }},
    {"aten.relu.default", "aten::relu.out", Form::kPlain, "relu_of(x)", "max(x, 0)",
     [](double x, P) { return x < 0 ? 0.0 : x; },
     [](int64_t x, Ints) { return std::max<int64_t>(x, 0); }},
    {"aten.relu6.default", "", Form::kPlain, "at_most(at_least(x, 0.0), 6.0)", "clamp(x, 0, 6)",
     [](double x, P) { return clamp(x, 0, 6); },
     [](int64_t x, Ints) { return std::clamp<int64_t>(x, 0, 6); }},
    {"aten.sigmoid.default", "aten::sigmoid.out", Form::kPlain, "sigmoid_of(x)", "",
     [](double x, P) { return sigmoid(x); }},
    {"aten.silu.default", "aten::silu.out", Form::kPlain, "silu_of(x)", "",
     [](double x, P) { return x * sigmoid(x); }},
    {"aten.hardsigmoid.default", "aten::hardsigmoid.out", Form::kPlain,
     "at_most(at_least(x + 3.0, 0.0), 6.0) / 6.0", "",
     [](double x, P) { return clamp(x + 3, 0, 6) / 6; }},
    {"aten.hardswish.default", "aten::hardswish.out", Form::kPlain,
     "x * at_most(at_least(x + 3.0, 0.0), 6.0) / 6.0", "",
     [](double x, P) { return x * clamp(x + 3, 0, 6) / 6; }},
    {"aten.gelu.default", "aten::gelu.out", Form::kText},
    {"aten.hardshrink.default", "aten::hardshrink.out", Form::kOne,
     "select(x, 0.0, x >= -params.a && x <= params.a)", "",
     [](double x, P p) { return x >= -p[0] && x <= p[0] ? 0.0 : x; }},
    {"aten.leaky_relu.default", "aten::leaky_relu.out", Form::kOne,
     "select(params.a * x, x, x >= 0.0)", "", [](double x, P p) { return x >= 0 ? x : p[0] * x; }},
    {"aten.logit.default", "aten::logit.out", Form::kOptional, "logit_of(x, params.a)", "",
     [](double x, P p) {
       const double z = p[0] < 0 ? x : clamp(x, p[0], 1 - p[0]);
       return std::log(z / (1 - z));
     }},
    {"aten.softplus.default", "aten::softplus.out", Form::kTwo,
     "select(log1p_of(exp_of(at_most(x * params.a, params.b))) / params.a, x, x * params.a > "
     "params.b)",
     "", [](double x, P p) { return x * p[0] > p[1] ? x : std::log1p(std::exp(x * p[0])) / p[0]; }},
    {"aten.hardtanh.default", "aten::hardtanh.out", Form::kTwo, kClamp, kClampInt,
     [](double x, P p) { return clamp(x, p[0], p[1]); }, clamp_int},
    {"aten.clamp.default", "aten::clamp.out", Form::kBounds, kClamp, kClampInt,
     [](double x, P p) { return clamp(x, p[0], p[1]); }, clamp_int},
    {"aten.elu.default", "aten::elu.out", Form::kThree,
     "params.b * select(params.a * expm1_of(x * params.c), x, x > 0.0)", "",
     [](double x, P p) { return p[1] * (x > 0 ? x : p[0] * std::expm1(x * p[2])); }},
    {"aten.logical_not.default", "aten::logical_not.out", Form::kPlain, kNot, kNot,
     [](double x, P) { return x == 0 ? 1.0 : 0.0; }, kNotBool.host_i},
    {"aten.bitwise_not.default", "aten::bitwise_not.out", Form::kBits, "", "~x", nullptr,
     [](int64_t x, Ints) { return ~x; }},
    {"aten.isnan.default", "aten::isnan.out", Form::kPlain,
     "select(0.0, 1.0, magnitude_bits(x) > 0x7f800000u)", "0",
     [](double x, P) { return std::isnan(x) ? 1.0 : 0.0; },
     [](int64_t, Ints) -> int64_t { return 0; }},
    {"aten.isinf.default", "aten::isinf.out", Form::kPlain,
     "select(0.0, 1.0, magnitude_bits(x) == 0x7f800000u)", "0",
     [](double x, P) { return std::isinf(x) ? 1.0 : 0.0; },
     [](int64_t, Ints) -> int64_t { return 0; }},
    {"aten.isfinite.default", "", Form::kPlain, "select(0.0, 1.0, magnitude_bits(x) < 0x7f800000u)",
     "1", [](double x, P) { return std::isfinite(x) ? 1.0 : 0.0; },
     [](int64_t, Ints) -> int64_t { return 1; }},
};

enum Position { kX };

// The rule of a call.
Result<const Row*> rule(const Node& n) {
  const Row* r = static_cast<const Row*>(n.def().row);
  if (r->form == Form::kBits && n.in(kX).dtype == DType::kBool) return &kNotBool;
  if (r->form != Form::kText) return r;
  const std::string_view approximate = n.text(1);
  if (approximate.empty() || approximate == "none") return &kGeluErf;
  if (approximate == "tanh") return &kGeluTanh;
  return n.unsupported(fmt::format("approximate: expected none or tanh, got '{}'", approximate));
}

Scalars scalars(const Node& n, Form form) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (form) {
    case Form::kOne: return {n.number(1)};
    case Form::kOptional: return {n.number_or(1, -1.0)};
    case Form::kTwo: return {n.number(1), n.number(2)};
    case Form::kBounds: return {n.number_or(1, -kInfinity), n.number_or(2, kInfinity)};
    case Form::kThree: return {n.number(1), n.number(2), n.number(3)};
    default: return {};
  }
}

// Integers stay integers unless the result is a float or a bound is not integral.
bool computes_float(const Node& n, const Row& r, P p) {
  if (r.host_i == nullptr || is_float(n.in(kX).dtype) || is_float(n.out().dtype)) return true;
  return std::floor(p[0]) != p[0] || std::floor(p[1]) != p[1];
}

template <typename T>
T saturate(double v) {
  constexpr auto kLimits = std::numeric_limits<T>();
  if (!(v > static_cast<double>(kLimits.min()))) return kLimits.min();
  if (!(v < static_cast<double>(kLimits.max()))) return kLimits.max();
  return static_cast<T>(v);
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Row* r, rule(n));
  const Scalars s = scalars(n, r->form);
  const bool floats = computes_float(n, *r, s);
  const Tensor y = n.out();
  const shaders::UnaryParams params{.n = u32(y.numel()),
                                    .a = static_cast<float>(s[0]),
                                    .b = static_cast<float>(s[1]),
                                    .c = static_cast<float>(s[2]),
                                    .a_int = saturate<int32_t>(s[0]),
                                    .b_int = saturate<int32_t>(s[1])};
  return p.dispatch(n, {.shader = &shaders::unary,
                        .options = {{"compute", floats ? "f32" : "i32"},
                                    {"apply", std::string(floats ? r->f32 : r->i32)}},
                        .variant = r->name,
                        .bind = {{"x", n.in(kX)}, {"y", y}},
                        .params = bytes_of(params),
                        .grid = per_word(words(y.numel(), y.dtype), p.caps())});
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Row* r, rule(n));
  const Scalars s = scalars(n, r->form);
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor y = h.host(n.out_id());
  const int64_t count = y.numel();
  if (computes_float(n, *r, s)) {
    for (int64_t i = 0; i < count; ++i) y.put(i, r->host_f(x.number(i), s));
    return {};
  }
  std::array<int64_t, 2> bounds = {saturate<int64_t>(s[0]), saturate<int64_t>(s[1])};
  for (size_t k = 0; k < 2 && r->form == Form::kBounds; ++k) {
    if (n.has(k + 1) && n.number_is_int(k + 1)) bounds[k] = n.integer(k + 1).value();
  }
  for (int64_t i = 0; i < count; ++i) y.put_integer(i, r->host_i(x.integer(i), bounds));
  return {};
}

constexpr Arg kPlainArgs[] = {in("x"), out("y")};
constexpr Arg kBitsArgs[] = {in("x", kBools | kIntegers), out("y", kBools | kIntegers)};
constexpr Arg kTextArgs[] = {in("x"), text("approximate"), out("y")};
constexpr Arg kOneArgs[] = {in("x"), number("a"), out("y")};
constexpr Arg kOptionalArgs[] = {in("x"), optional_number("a"), out("y")};
constexpr Arg kTwoArgs[] = {in("x"), number("a"), number("b"), out("y")};
constexpr Arg kBoundsArgs[] = {in("x"), optional_number("min"), optional_number("max"), out("y")};
constexpr Arg kThreeArgs[] = {in("x"), number("a"), number("b"), number("c"), out("y")};

std::span<const Arg> args(Form f) {
  switch (f) {
    case Form::kPlain: return kPlainArgs;
    case Form::kBits: return kBitsArgs;
    case Form::kText: return kTextArgs;
    case Form::kOne: return kOneArgs;
    case Form::kOptional: return kOptionalArgs;
    case Form::kTwo: return kTwoArgs;
    case Form::kBounds: return kBoundsArgs;
    case Form::kThree: return kThreeArgs;
  }
  return {};
}

}  // namespace

void add_unary(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = std::span(&r.spelling, 1),
                     .args = args(r.form),
                     .shape = shape_like_first,
                     .plan = plan,
                     .cpu = cpu,
                     .fast = unary_fast,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

// Batch norm by stored statistics, as inference has it.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/batch_norm.h"

#include <cmath>

#include "pteryx/ops/norm.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

constexpr Arg kStoredArgs[] = {
    in("x", kFloats, 2), optional_in("weight", kFloats), optional_in("bias", kFloats),
    in("mean", kFloats), in("variance", kFloats),        any("momentum"),
    number("eps"),       out_list("y", 3, kFloats)};

enum Stored { kX, kWeight, kBias, kMean, kVariance, kMomentum, kEps };
constexpr Affine kAffine{kWeight, kBias};

int64_t inner_of(const Tensor& x) {
  int64_t n = 1;
  for (size_t i = 2; i < x.rank(); ++i) n *= x.dims[i];
  return n;
}

// The second and third result are for training; they keep the size the file gives them and are not
// written.
Status shape(const Node& n, Shapes& s) {
  const Tensor x = n.in(kX);
  for (const size_t arg : {kWeight, kBias, kMean, kVariance})
    PTERYX_TRY(check_affine(n, arg, x.dims[1]));
  if (!n.has_out(0)) return n.fail(Code::kInvalidProgram, "the first result is None");
  return s.set(0, x.dims);
}

Status plan(const Node& n, Plan& p) {
  const Tensor x = n.in(kX);
  const Tensor y = n.out();
  std::vector<Bind> bind = {{"x", x}, {"mean", n.in(kMean)}, {"variance", n.in(kVariance)}};
  Options options;
  bind_affine(n, kAffine, bind, options);
  bind.push_back({"y", y});
  const shaders::BatchNormParams params{.n = u32(y.numel()),
                                        .channels = u32(x.dims[1]),
                                        .inner = u32(inner_of(x)),
                                        .eps = static_cast<float>(n.number(kEps))};
  return p.dispatch(n, {.shader = &shaders::batch_norm,
                        .options = std::move(options),
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

Status cpu(const Node& n, const Host& h) {
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor mean = h.host(n.in(kMean).id);
  const HostTensor variance = h.host(n.in(kVariance).id);
  const HostTensor y = h.host(n.out_id());
  const int64_t inner = inner_of(n.in(kX));
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t c = i / inner % x.dims[1];
    const double v =
        (x.number(i) - mean.number(c)) / std::sqrt(variance.number(c) + n.number(kEps));
    y.put(i, affine_on_host(n, h, kAffine, v, c));
  }
  return {};
}

constexpr std::string_view kStoredSpellings[] = {"aten::_native_batch_norm_legit_no_training.out"};

}  // namespace

Status check_affine(const Node& n, size_t arg, int64_t channels) {
  if (arg == 0 || !n.has(arg) || n.in(arg).numel() == channels) return {};
  return n.mismatch(arg, "shape", to_string(Dims{channels}), to_string(n.in(arg).dims));
}

void bind_affine(const Node& n, const Affine& f, std::vector<Bind>& bind, Options& options) {
  const bool weight = f.weight != 0 && n.has(f.weight);
  const bool bias = f.bias != 0 && n.has(f.bias);
  if (weight) bind.push_back({"weight", n.in(f.weight)});
  if (bias) bind.push_back({"bias", n.in(f.bias)});
  options.set("has_weight", weight ? 1 : 0).set("has_bias", bias ? 1 : 0);
}

double affine_on_host(const Node& n, const Host& h, const Affine& f, double v, int64_t channel) {
  if (f.weight != 0 && n.has(f.weight)) v *= h.host(n.in(f.weight).id).number(channel);
  if (f.bias != 0 && n.has(f.bias)) v += h.host(n.in(f.bias).id).number(channel);
  return v;
}

void add_batch_norm(std::vector<OpDef>& table) {
  table.push_back({.name = "aten._native_batch_norm_legit_no_training.default",
                   .spellings = kStoredSpellings,
                   .args = kStoredArgs,
                   .shape = shape,
                   .plan = plan,
                   .cpu = cpu});
}

}  // namespace pteryx::ops

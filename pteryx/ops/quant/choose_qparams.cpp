// Operators that choose a scale and a zero point for a tensor or for each of its rows, from its
// smallest and largest value.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/choose_qparams.h"

#include <algorithm>
#include <cmath>

#include "pteryx/ops/fold.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum class Form : uint8_t {
  kTensor,    // x, qmin, qmax, eps, dtype: one pair, [1]
  kPerToken,  // x, dtype: a pair per row, [..., 1], codes -128 .. 127
  kBlocks,    // torchao: x, mapping, block_size, target_dtype, qmin, qmax, eps, ...: a pair per row
};
struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  std::span<const Arg> args;
  Form form;
};
enum BlockArg { kMapping = 1, kBlockSize = 2, kQmin = 4, kQmax = 5, kEps = 6 };
constexpr size_t kX = 0;
constexpr double kFloatEps = 1.1920928955078125e-07;  // 2^-23

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

struct Choice {
  int64_t rows = 1;
  int64_t length = 0;
  double qmin = -128;
  double qmax = 127;
  double eps = kFloatEps;
};

bool are_whole_rows(const Dims& block, const Dims& x) {
  bool whole = block.rank() == x.rank() && !x.empty();
  for (size_t d = 0; whole && d < x.rank(); ++d) {
    whole = d + 1 < x.rank() ? block[d] == 1 || x[d] == 1 : block[d] == x[d];
  }
  return whole;
}

// Blocks are whole rows: 1 in every dim but the last. Where they are in the file, a run with rows
// of another length is the caller's.
Status check_blocks(const Node& n) {
  const Tensor x = n.in(kX);
  PTERYX_ASSIGN(const Dims block, n.ints(kBlockSize));
  if (!are_whole_rows(block, x.dims)) {
    return n.fail(
        are_whole_rows(block, n.max_dims(x.id)) ? Code::kInvalidArgument : Code::kUnsupported,
        fmt::format("block_size {} for x {}: only whole rows", to_string(block),
                    to_string(x.dims)));
  }
  if (n.text(kMapping) != "ASYMMETRIC") {
    return n.unsupported(fmt::format("mapping_type {}: only ASYMMETRIC", n.text(kMapping)));
  }
  return {};
}

Result<Choice> describe(const Node& n) {
  const Tensor x = n.in(kX);
  Choice c;
  switch (row(n).form) {
    case Form::kTensor:
      c.length = x.numel();
      c.qmin = n.number(1);
      c.qmax = n.number(2);
      c.eps = n.number(3);
      break;
    case Form::kPerToken:
      c.rows = x.rows();
      c.length = x.dim(-1);
      break;
    case Form::kBlocks:
      PTERYX_TRY(check_blocks(n));
      c.rows = x.rows();
      c.length = x.dim(-1);
      c.qmin = n.number_or(kQmin, -128);
      c.qmax = n.number_or(kQmax, 127);
      c.eps = n.number_or(kEps, kFloatEps);
      break;
  }
  if (!(c.qmin < c.qmax)) {
    return n.fail(Code::kInvalidProgram, fmt::format("codes from {} to {}", c.qmin, c.qmax));
  }
  return c;
}

// One pair per row: the dims of x without the last, or with a 1 in its place where the file has the
// rank of x.
Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN([[maybe_unused]] const Choice c, describe(n));
  for (size_t i = 0; i < 2; ++i) {
    Dims d = n.in(kX).dims;
    if (row(n).form == Form::kTensor || d.empty()) {
      d = n.max_dims(n.out_id(i)).empty() ? Dims{} : Dims{1};
    } else if (row(n).form == Form::kPerToken || n.max_dims(n.out_id(i)).rank() == d.rank()) {
      d[d.rank() - 1] = 1;
    } else {
      d.erase(d.rank() - 1);
    }
    PTERYX_TRY(s.set(i, d));
  }
  return {};
}

template <FoldRoute R>
Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Choice c, describe(n));
  const Fold f = make_fold(R, c.length, 1024, p.caps());
  const shaders::ChooseQparamsParams params{.rows = u32(c.rows),
                                            .length = u32(c.length),
                                            .qmin = static_cast<float>(c.qmin),
                                            .qmax = static_cast<float>(c.qmax),
                                            .eps = static_cast<float>(c.eps)};
  Options options = f.options();
  options.set("zero_from", row(n).form == Form::kPerToken ? "nearer" : "low");
  return p.dispatch(n, {.shader = &shaders::choose_qparams,
                        .options = std::move(options),
                        .bind = {{"x", n.in(kX)}, {"scale", n.out(0)}, {"zero", n.out(1)}},
                        .params = bytes_of(params),
                        .grid = f.grid(c.rows, p.caps())});
}

constexpr Route kRoutes[] = {
    {"subgroup", fits_subgroup_fold, plan<FoldRoute::kSubgroup>},
    {"workgroup", nullptr, plan<FoldRoute::kTree>},
};

float zero_of(const Choice& c, Form form, float lo, float hi, float scale) {
  const auto qmin = static_cast<float>(c.qmin);
  const auto qmax = static_cast<float>(c.qmax);
  if (form != Form::kPerToken) return qmin - std::nearbyint(lo / scale);
  const float low = lo / scale;
  const float high = hi / scale;
  return std::nearbyint(qmin + low + qmax + high > 0 ? qmin - low : qmax - high);
}

// In f32, as PyTorch does it: a zero point is a rounded quotient.
Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Choice c, describe(n));
  const HostTensor x = h.host(n.in(kX).id);
  const HostTensor scales = h.host(n.out_id(0));
  const HostTensor zeros = h.host(n.out_id(1));
  for (int64_t r = 0; r < c.rows; ++r) {
    float lo = 0;
    float hi = 0;
    for (int64_t i = 0; i < c.length; ++i) {
      const auto v = static_cast<float>(x.number(r * c.length + i));
      lo = std::fmin(lo, v);
      hi = std::fmax(hi, v);
    }
    const float scale =
        std::fmax((hi - lo) / static_cast<float>(c.qmax - c.qmin), static_cast<float>(c.eps));
    scales.put(r, static_cast<double>(scale));
    zeros.put(
        r, std::clamp(static_cast<double>(zero_of(c, row(n).form, lo, hi, scale)), c.qmin, c.qmax));
  }
  return {};
}

constexpr Arg kScaleAndZero = out_list("out", 2, kFloats, kIntegers);
constexpr Arg kTensorArgs[] = {in("x", kFloats), number("quant_min"), number("quant_max"),
                               number("eps"),    any("dtype"),        kScaleAndZero};
constexpr Arg kTokenArgs[] = {in("x", kFloats, 1), any("dtype"), kScaleAndZero};
constexpr Arg kBlockArgs[] = {in("x", kFloats, 1),
                              text("mapping_type"),
                              ints("block_size"),
                              any("target_dtype"),
                              optional_number("quant_min"),
                              optional_number("quant_max"),
                              optional_number("eps"),
                              any("scale_dtype"),
                              any("zero_point_dtype"),
                              any("keepdim"),
                              kScaleAndZero};

constexpr Row kRows[] = {
    {"torchao.choose_qparams_affine.default",
     {"torchao::choose_qparams_affine.out"},
     kBlockArgs,
     Form::kBlocks},
    {"quantized_decomposed.choose_qparams.tensor",
     {"quantized_decomposed::choose_qparams.Tensor_out"},
     kTensorArgs,
     Form::kTensor},
    {"quantized_decomposed.choose_qparams_per_token_asymmetric.default",
     {"quantized_decomposed::choose_qparams_per_token_asymmetric.out"},
     kTokenArgs,
     Form::kPerToken},
};

}  // namespace

void add_choose_qparams(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan_by_route,
                     .cpu = cpu,
                     .family = "choose_qparams",
                     .routes = kRoutes,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

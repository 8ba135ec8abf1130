// What the routes of quantised linear layers share: weights in whole vectors, and the options,
// tensors and params of quant/kernels/common.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "pteryx/ops/quant/qlinear.h"
#include "pteryx/ops/shaders/qlinear_naive.h"

namespace pteryx::ops::qlinear {

using Params = shaders::QlinearNaiveParams;  // all routes include one
Params make_params(const QLinear& d);
// Those that are sizes as options of a kernel that has them fixed; rows are m.
void set_sizes(const Params& p, Options& to);

// ---------------------------------------------------------------- weights

// Codes in a vec4<u32>: what the fast routes fetch at once.
int64_t unit(const QLinear& d);
// Every unit has one scale.
bool one_scale(const QLinear& d);
// Whether rows are whole vectors with the even code in the low nibble, or can be laid out so.
bool has_vectors(const Node& n, const QLinear& d);
// Lays the weight out so, where it is not.
Status use_vectors(const Node& n, Plan& p, QLinear& d);
std::string name_of(ScaleOrder order);                   // scale_index.wgsl
void set_weight_options(const QLinear& d, Options& to);  // weights.wgsl
// Weight, scales and minimums; the option says whether there are these.
void bind_weight(const QLinear& d, Options& to, std::vector<Bind>& bind);

// ---------------------------------------------------------------- x and y

void set_x_options(const QLinear& d, Options& to);  // x.wgsl
// results.wgsl: finished results, or parts of the sums in y.
void set_result_options(const QLinear& d, bool parts, Options& to);
// finish.wgsl: bias and residual.
void set_finish(const QLinear& d, Options& to, std::vector<Bind>& bind);
void bind_results(const QLinear& d, std::vector<Bind>& bind);
// rotated.wgsl, instead of results.wgsl; rows of caches and tables are live ints.
enum class Places : uint8_t { kAll, kQueries, kCaches };
void set_rotation(const QLinear& d, Options& to, std::vector<Bind>& bind,
                  Places places = Places::kAll);
// Storage buffers that a kernel has for it, the live ints among them.
uint32_t rotation_buffers(const QLinear& d);
std::vector<LiveInt> live_ints(const QLinear& d);

// A result and the columns it has.
struct Columns {
  Tensor y;
  int64_t first = 0;
  int64_t width = 0;
};
std::vector<Columns> results(const QLinear& d);
bool widths_are(const QLinear& d, int64_t multiple);  // multiples of it, of all results

// A product makes sums of x as it is, and stores them: what else the layer asks for is done before
// and behind it, but for the slots that it fills itself.
struct Slots {
  bool rounding = false;  // of x by row
  bool norm = false;
  bool gate = false;
  bool rotation = false;
  bool halves = false;  // it takes x in f16, so what is before it makes that
};
// Whether a product in f16 takes its codes apart most cheaply where x is interleaved.
bool wants_interleaved(const QLinear& d);
// Rows that x made for a layer has, of which only the first m are written.
inline constexpr int64_t kFillRows = 128;
using Product = Status (*)(const Node& n, Plan& p, QLinear d);
Status plan_around(const Node& n, Plan& p, Product product, const Slots& own = {});

// Options, behind those given, and tensors of a route that includes all of x.wgsl, weights.wgsl and
// results.wgsl.
struct Pieces {
  Options options;
  std::vector<Bind> bind;
};
Pieces pieces(const QLinear& d, bool parts, Options options);

// Sums of a product whose k was cut: [splits, m, n], m and n up to multiples of fill_m and fill_n.
struct Parts {
  Tensor sums;
  int64_t splits = 1;
  int64_t fill_m = 1;
  int64_t fill_n = 1;
  // Of a gated product: columns come as so many gates, then as many that they let through, and so
  // on.
  int64_t paired_side = 0;
};
// Adds them up, and does with the sums what the layer asks for.
Status plan_merge(const Node& n, Plan& p, const QLinear& d, const Parts& parts);

inline int64_t up(int64_t n, int64_t step) { return (n + step - 1) / step; }

}  // namespace pteryx::ops::qlinear

// The GPU routes of convolution: which one a call takes, and how each is dispatched.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "pteryx/ops/conv/params.h"
#include "pteryx/ops/shaders/conv_columns.h"
#include "pteryx/ops/shaders/conv_depthwise.h"
#include "pteryx/ops/shaders/conv_direct.h"
#include "pteryx/ops/shaders/conv_transposed.h"

namespace pteryx::ops::conv {
namespace {

// The routes of four neighbouring results per invocation.
template <typename Params>
Status plan_rows(const Node& n, Plan& p, const Shader& shader) {
  PTERYX_ASSIGN(const Conv c, read_conv(n));
  const int64_t items = c.batch * c.channels() * c.out[0] * c.out[1] * ((c.out[2] + 3) / 4);
  const Params params = make_params<Params>(n, c, items);
  Options options;
  std::vector<Bind> bind = {{"x", n.in(kX)}, {"weight", n.in(kWeight)}};
  add_results(n, {n.out()}, c.out[2], options, bind);
  return p.dispatch(n, {.shader = &shader,
                        .options = std::move(options),
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(items, p.caps())});
}

// Results beside each other that an invocation of conv_columns makes: f16 is written in pairs.
int64_t column_side(const Node& n, const Conv& c) {
  return n.out().dtype == DType::kF16 && c.out[2] % 2 == 0 && c.stride[2] <= 2 && c.dilation[2] == 1
             ? 2
             : 1;
}
// Results below each other: few where there are few in all.
int64_t column_rows(const Conv& c, int64_t side, const gpu::Caps& caps) {
  const int64_t columns = c.batch * c.channels() * c.out[2] / side;
  const int64_t wanted = columns * c.out[1] / caps.sizes.enough_invocations();
  return wanted >= 4 ? 4 : 2;
}

Status plan_columns(const Node& n, Plan& p) {
  constexpr int64_t kThreads = 128;
  PTERYX_ASSIGN(const Conv c, read_conv(n));
  const int64_t side = column_side(n, c);
  const int64_t rows = column_rows(c, side, p.caps());
  const int64_t items = c.batch * c.channels() * (up(c.out[1], rows) / rows) * c.out[2] / side;
  const auto params = make_params<shaders::ConvColumnsParams>(n, c, items);
  Options options = {{"kernel_h", c.kernel[1]},
                     {"kernel_w", c.kernel[2]},
                     {"stride_h", c.stride[1]},
                     {"rows", rows},
                     {"side", side}};
  if (side == 2) options.set("stride_w", c.stride[2]);
  std::vector<Bind> bind = {{"x", n.in(kX)}, {"weight", n.in(kWeight)}};
  add_results(n, {n.out()}, side, options, bind);
  return p.dispatch(n, {.shader = &shaders::conv_columns,
                        .options = std::move(options),
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_group(up(items, kThreads) / kThreads, p.caps())});
}

// What the routes ask of a call that shape() has accepted.
bool holds(const Node& n, bool (*test)(const Conv&)) {
  const auto c = read_conv(n);
  return c.ok() && test(*c);
}
bool is_transposed(const Node& n, const gpu::Caps&) {
  return holds(n, [](const Conv& c) { return c.transposed; });
}
bool is_plain(const Node& n, const gpu::Caps&) {
  return holds(n, [](const Conv& c) { return !c.transposed; });
}
// With many output channels a group, tiles use the input better.
bool is_depthwise(const Node& n, const gpu::Caps&) {
  return holds(n, [](const Conv& c) {
    return !c.transposed && c.spatial < 3 && c.in_channels == 1 && c.out_channels <= 8;
  });
}
// Kernels whose size is worth a pipeline of its own.
bool fits_columns(const Node& n, const gpu::Caps& caps) {
  return is_depthwise(n, caps) && holds(n, [](const Conv& c) {
           return c.kernel[1] <= 7 && c.kernel[2] <= 7 && c.stride[1] <= 2 && c.dilation[1] == 1;
         });
}
// What software GPUs gain is less than it takes to compile.
bool suits_columns(const Node& n, const gpu::Caps& caps) {
  return !caps.software && holds(n, [](const Conv& c) { return c.kernel[1] > 1 && c.out[1] > 1; });
}
// Tiles of 32 x 32 would be less than an eighth full, or take too long to compile.
bool suits_direct(const Node& n, const gpu::Caps& caps) {
  return caps.slow_compiler || holds(n, [](const Conv& c) {
           const auto up = [](int64_t v) { return (v + 31) / 32 * 32; };
           const int64_t tiled = up(c.out_channels) * up(c.positions());
           return !c.transposed && c.in_channels > 1 && c.terms() < 256 &&
                  c.out_channels * c.positions() * 8 <= tiled;
         });
}

constexpr Route kRoutes[] = {
    {"transposed", is_transposed,
     [](const Node& n, Plan& p) {
       return plan_rows<shaders::ConvTransposedParams>(n, p, shaders::conv_transposed);
     }},
    {"columns", fits_columns, plan_columns, suits_columns},
    {"depthwise", is_depthwise,
     [](const Node& n, Plan& p) {
       return plan_rows<shaders::ConvDepthwiseParams>(n, p, shaders::conv_depthwise);
     }},
    {"direct", is_plain,
     [](const Node& n, Plan& p) {
       return plan_rows<shaders::ConvDirectParams>(n, p, shaders::conv_direct);
     },
     suits_direct},
    {"matrix_halves", fits_matrix_halves, plan_matrix_halves, suits_matrix_halves, Precision::kF16},
    {"matrix", fits_matrix, plan_matrix, nullptr, Precision::kF16},
    {"winograd4", fits_winograd<4>, plan_winograd<4>, suits_winograd<4>},
    {"winograd2", fits_winograd<2>, plan_winograd<2>, suits_winograd<2>},
    {"tile", fits_tile, plan_tile},
};

}  // namespace

std::span<const Route> routes() { return kRoutes; }

}  // namespace pteryx::ops::conv

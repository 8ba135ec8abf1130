// Sampling an image at the places of a grid, and the grid of a detector's cells.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/ops/op.h"
#include "pteryx/ops/shaders/grid_priors.h"
#include "pteryx/ops/shaders/grid_sampler.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

namespace sampler {

enum Position { kX, kGrid, kMode, kOutside, kAlign };
enum Mode : int64_t { kBilinear, kNearest, kCubic };
enum Outside : int64_t { kZero, kBorder, kReflection };
// The same as the shader has them.
constexpr std::array<std::string_view, 3> kModes = {"bilinear", "nearest", "cubic"};
constexpr std::array<std::string_view, 3> kOutsides = {"zero", "border", "reflection"};

struct Sampling {
  int64_t mode = kBilinear;
  int64_t outside = kZero;
  bool align = false;
};

Result<Sampling> read_sampling(const Node& n) {
  Sampling s;
  PTERYX_ASSIGN(s.mode, n.integer(kMode));
  PTERYX_ASSIGN(s.outside, n.integer(kOutside));
  s.align = n.flag(kAlign);
  if (s.mode < 0 || s.mode > kCubic) {
    return n.malformed(kMode, "value", "0 (bilinear), 1 (nearest) or 2 (bicubic)",
                       std::to_string(s.mode));
  }
  if (s.outside < 0 || s.outside > kReflection) {
    return n.malformed(kOutside, "value", "0 (zeros), 1 (border) or 2 (reflection)",
                       std::to_string(s.outside));
  }
  return s;
}

Status shape(const Node& n, Shapes& out) {
  PTERYX_ASSIGN([[maybe_unused]] const Sampling s, read_sampling(n));
  const Dims x = n.in(kX).dims;
  const Dims grid = n.in(kGrid).dims;
  PTERYX_TRY(n.expect(kGrid, "shape", {x[0], grid[1], grid[2], 2}, grid));
  if (x[2] * x[3] == 0 && grid[1] * grid[2] > 0) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("x {} has no elements to sample", to_string(x)));
  }
  return out.set({x[0], x[1], grid[1], grid[2]});
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Sampling s, read_sampling(n));
  const Tensor x = n.in(kX);
  const Tensor y = n.out();
  const shaders::GridSamplerParams params{.in_h = u32(x.dims[2]),
                                          .in_w = u32(x.dims[3]),
                                          .out_size = u32(y.dims[2] * y.dims[3]),
                                          .channels = u32(x.dims[1]),
                                          .n = u32(y.numel())};
  return p.dispatch(
      n, {.shader = &shaders::grid_sampler,
          .options = {{"mode", std::string(kModes[static_cast<size_t>(s.mode)])},
                      {"outside", std::string(kOutsides[static_cast<size_t>(s.outside)])},
                      {"align", s.align ? 1 : 0}},
          .bind = {{"x", x}, {"grid", n.in(kGrid)}, {"y", y}},
          .params = bytes_of(params),
          .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

double unnormalize(const Sampling& s, double v, int64_t size) {
  const auto width = static_cast<double>(size);
  return s.align ? (v + 1) / 2 * (width - 1) : ((v + 1) * width - 1) / 2;
}

// Mirrors v at the first and last centre (aligned) or at the edges of the image.
double reflect(const Sampling& s, double v, int64_t size) {
  const double low = s.align ? 0.0 : -0.5;
  const double width = static_cast<double>(s.align ? size - 1 : size);
  if (width == 0) return 0;
  const double rest = std::fmod(std::fabs(v - low), 2 * width);
  return low + (rest < width ? rest : 2 * width - rest);
}

double bring_inside(const Sampling& s, double v, int64_t size) {
  if (s.outside == kZero) return v;
  if (s.outside == kReflection) v = reflect(s, v, size);
  return std::clamp(v, 0.0, static_cast<double>(size - 1));
}

// A plane of the input.
struct Image {
  const HostTensor& x;
  int64_t first = 0;
  int64_t height = 0;
  int64_t width = 0;

  // At a whole (row, column); 0 outside, and for NaN.
  double at(double row, double column) const {
    if (!(row >= 0 && row < static_cast<double>(height) && column >= 0 &&
          column < static_cast<double>(width)))
      return 0;
    return x.number(first + static_cast<int64_t>(row) * width + static_cast<int64_t>(column));
  }
};

// Shares of the elements floor(v) - 1 .. floor(v) + 2.
std::array<double, 4> shares(const Sampling& s, double v) {
  const double t = v - std::floor(v);
  if (s.mode == kBilinear) return {0, 1 - t, t, 0};
  const auto near = [](double d) { return (1.25 * d - 2.25) * d * d + 1; };
  const auto far = [](double d) { return ((-0.75 * d + 3.75) * d - 6) * d + 3; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

double sample(const Sampling& s, const Image& image, double row, double column) {
  const auto inside_h = [&](double v) { return bring_inside(s, v, image.height); };
  const auto inside_w = [&](double v) { return bring_inside(s, v, image.width); };
  if (s.mode == kNearest)
    return image.at(std::nearbyint(inside_h(row)), std::nearbyint(inside_w(column)));
  // Bilinear brings the place inside, cubic each of the elements around it.
  const bool cubic = s.mode == kCubic;
  if (!cubic) {
    row = inside_h(row);
    column = inside_w(column);
  }
  const std::array<double, 4> h = shares(s, row);
  const std::array<double, 4> w = shares(s, column);
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) {
      if (h[i] * w[j] == 0) continue;
      const double r = std::floor(row) + static_cast<double>(i) - 1;
      const double c = std::floor(column) + static_cast<double>(j) - 1;
      sum += h[i] * w[j] * (cubic ? image.at(inside_h(r), inside_w(c)) : image.at(r, c));
    }
  }
  return sum;
}

Status cpu(const Node& n, const Host& host) {
  PTERYX_ASSIGN(const Sampling s, read_sampling(n));
  const HostTensor x = host.host(n.in(kX).id);
  const HostTensor grid = host.host(n.in(kGrid).id);
  const HostTensor y = host.host(n.out_id());
  const int64_t size = y.dims[2] * y.dims[3];
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t plane = i / size;
    const int64_t at = (plane / y.dims[1] * size + i % size) * 2;
    const Image image{x, plane * x.dims[2] * x.dims[3], x.dims[2], x.dims[3]};
    y.put(i, sample(s, image, unnormalize(s, grid.number(at + 1), image.height),
                    unnormalize(s, grid.number(at), image.width)));
  }
  return {};
}

constexpr Arg kArgs[] = {in("x", kFloats, 4, 4),       in("grid", kFloats, 4, 4),
                         number("interpolation_mode"), number("padding_mode"),
                         number("align_corners"),      out("y", kFloats)};
constexpr std::string_view kSpellings[] = {"aten::grid_sampler_2d.out"};

}  // namespace sampler

namespace priors {

enum Position { kX, kStride, kOffset };

Status shape(const Node& n, Shapes& s) {
  const Dims x = n.in(kX).dims;
  return s.set({x[x.rank() - 2] * x[x.rank() - 1], 2});
}

Status plan(const Node& n, Plan& p) {
  const Tensor y = n.out();
  const shaders::GridPriorsParams params{.width = u32(n.in(kX).dim(-1)),
                                         .n = u32(y.numel()),
                                         .stride = static_cast<float>(n.number(kStride)),
                                         .offset = static_cast<float>(n.number(kOffset))};
  return p.dispatch(n, {.shader = &shaders::grid_priors,
                        .bind = {{"y", y}},
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

bool gpu(const Node& n) { return is_float(n.out().dtype); }

Status cpu(const Node& n, const Host& host) {
  const HostTensor y = host.host(n.out_id());
  const int64_t width = n.in(kX).dim(-1);
  for (int64_t cell = 0; cell < y.dims[0]; ++cell) {
    const int64_t row = cell / width;
    const int64_t column = cell % width;
    y.put(2 * cell, (static_cast<double>(column) + n.number(kOffset)) * n.number(kStride));
    y.put(2 * cell + 1, (static_cast<double>(row) + n.number(kOffset)) * n.number(kStride));
  }
  return {};
}

constexpr Arg kArgs[] = {in("x", kAnyType, 2), number("stride"), number("offset"), out("y")};

}  // namespace priors
}  // namespace

void add_grid(std::vector<OpDef>& table) {
  table.push_back({.name = "aten.grid_sampler_2d.default",
                   .spellings = sampler::kSpellings,
                   .args = sampler::kArgs,
                   .shape = sampler::shape,
                   .plan = sampler::plan,
                   .cpu = sampler::cpu});
  table.push_back({.name = "et_vk.grid_priors.default",
                   .args = priors::kArgs,
                   .shape = priors::shape,
                   .plan = priors::plan,
                   .gpu = priors::gpu,
                   .cpu = priors::cpu});
}

}  // namespace pteryx::ops

// Resizing of images: nearest, bilinear, and bilinear with antialiasing.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/upsample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum class Mode : uint8_t { kNearest, kBilinear, kAntialias };
// vec: a list of two scale factors instead of the size; otherwise the size with an optional factor
// per axis.
enum class Form : uint8_t { kVec, kSize };

struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  Mode mode;
  Form form;
};

constexpr Row kRows[] = {
    {"aten.upsample_nearest2d.vec",
     {"aten::upsample_nearest2d.vec_out"},
     Mode::kNearest,
     Form::kVec},
    {"aten.upsample_nearest2d.default",
     {"aten::upsample_nearest2d.out"},
     Mode::kNearest,
     Form::kSize},
    {"aten.upsample_bilinear2d.vec",
     {"aten::upsample_bilinear2d.vec_out"},
     Mode::kBilinear,
     Form::kVec},
    {"aten.upsample_bilinear2d.default",
     {"aten::upsample_bilinear2d.out"},
     Mode::kBilinear,
     Form::kSize},
    {"aten._upsample_bilinear2d_aa.vec", {}, Mode::kAntialias, Form::kVec},
    {"aten._upsample_bilinear2d_aa.default",
     {"aten::_upsample_bilinear2d_aa.out"},
     Mode::kAntialias,
     Form::kSize},
};

constexpr Arg kNearestVec[] = {in("x", kAnyType, 4, 4), optional_ints("output_size"),
                               optional_numbers("scale_factors"), out("y")};
constexpr Arg kLinearVec[] = {in("x", kFloats, 4, 4), optional_ints("output_size"),
                              number("align_corners"), optional_numbers("scale_factors"),
                              out("y", kFloats)};
constexpr Arg kNearestSize[] = {in("x", kAnyType, 4, 4), ints("output_size"),
                                optional_number("scales_h"), optional_number("scales_w"), out("y")};
constexpr Arg kLinearSize[] = {in("x", kFloats, 4, 4),      ints("output_size"),
                               number("align_corners"),     optional_number("scales_h"),
                               optional_number("scales_w"), out("y", kFloats)};

std::span<const Arg> args(const Row& r) {
  if (r.mode == Mode::kNearest) {
    return r.form == Form::kVec ? std::span<const Arg>(kNearestVec)
                                : std::span<const Arg>(kNearestSize);
  }
  return r.form == Form::kVec ? std::span<const Arg>(kLinearVec)
                              : std::span<const Arg>(kLinearSize);
}

enum Position { kX, kSize, kAlign };
const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

// One axis: sizes, and how many input steps one result step is.
struct Axis {
  int64_t in = 1;
  int64_t out = 1;
  float scale = 1;
};
struct Resize {
  Axis h;
  Axis w;
  bool align = false;
};

constexpr int64_t kLimit = 1 << 24;  // sizes stay exact as f32

// The scale factor of an axis; 0: none is given.
Result<double> read_factor(const Node& n, size_t axis) {
  const size_t first = row(n).mode == Mode::kNearest ? 2 : 3;
  if (row(n).form == Form::kSize) return n.number_or(first + axis, 0);
  if (!n.has(first)) return 0.0;
  const std::vector<double> list = n.numbers(first);
  if (list.empty()) return 0.0;
  if (list.size() != 2) return n.malformed(first, "length", "2", std::to_string(list.size()));
  if (!(list[axis] > 0))
    return n.mismatch(first, "entry", "more than 0", fmt::format("{}", list[axis]));
  return list[axis];
}

Status read_axis(const Node& n, size_t i, bool align, Axis& a) {
  a.in = n.in(kX).dims[2 + i];
  PTERYX_ASSIGN(const Dims size, n.ints(kSize));
  PTERYX_ASSIGN(const double factor, read_factor(n, i));
  if (!size.empty() && size.size() != 2)
    return n.malformed(kSize, "length", "2", std::to_string(size.size()));
  if (size.empty() && factor == 0)
    return n.fail(Code::kInvalidProgram, "neither output_size nor scale_factors is given");
  const double out =
      size.empty() ? std::floor(static_cast<double>(a.in) * factor) : static_cast<double>(size[i]);
  if (out < 0) return n.mismatch(kSize, "entry", "0 or more", fmt::format("{}", out));
  if (!(out <= static_cast<double>(kLimit)) || a.in > kLimit) {
    return n.unsupported(
        fmt::format("resizing {} to {}: sizes from 0 to {} are supported", a.in, out, kLimit));
  }
  a.out = static_cast<int64_t>(out);
  if (a.in == 0 && a.out > 0)
    return n.fail(Code::kInvalidArgument, fmt::format("x {} is empty", to_string(n.in(kX).dims)));
  // PyTorch forgets the factor where the sizes say it all.
  if (!align && a.out == a.in) {
    a.scale = 1;
  } else if (row(n).mode == Mode::kNearest && a.out == 2 * a.in) {
    a.scale = 0.5F;
  } else if (align) {
    a.scale = a.out > 1 ? static_cast<float>(a.in - 1) / static_cast<float>(a.out - 1) : 0.0F;
  } else if (factor > 0) {
    a.scale = static_cast<float>(1.0 / factor);
  } else {
    a.scale = a.out > 0 ? static_cast<float>(a.in) / static_cast<float>(a.out) : 0.0F;
  }
  return {};
}

Result<Resize> read_resize(const Node& n) {
  Resize r;
  r.align = row(n).mode != Mode::kNearest && n.flag(kAlign);
  PTERYX_TRY(read_axis(n, 0, r.align, r.h));
  PTERYX_TRY(read_axis(n, 1, r.align, r.w));
  return r;
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Resize r, read_resize(n));
  const Dims& x = n.in(kX).dims;
  return s.set({x[0], x[1], r.h.out, r.w.out});
}

bool gpu(const Node& n) { return is_float(n.in(kX).dtype); }

std::string_view mode_name(Mode m) {
  switch (m) {
    case Mode::kNearest: return "nearest";
    case Mode::kBilinear: return "bilinear";
    case Mode::kAntialias: return "antialias";
  }
  return "";
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Resize r, read_resize(n));
  const Tensor y = n.out();
  const std::string_view name = mode_name(row(n).mode);
  const shaders::UpsampleParams params{.in_h = u32(r.h.in),
                                       .in_w = u32(r.w.in),
                                       .out_h = u32(r.h.out),
                                       .out_w = u32(r.w.out),
                                       .scale_h = r.h.scale,
                                       .scale_w = r.w.scale,
                                       .offset = r.align ? 0.0F : 0.5F,
                                       .n = u32(y.numel())};
  return p.dispatch(n, {.shader = &shaders::upsample,
                        .options = {{"mode", std::string(name)}},
                        .variant = name,
                        .bind = {{"x", n.in(kX)}, {"y", y}},
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

// The element nearest to result `o`: the product is rounded as f32, as PyTorch does.
int64_t nearest_index(const Axis& a, int64_t o) {
  const float at = std::floor(static_cast<float>(o) * a.scale);
  return std::min(static_cast<int64_t>(at), a.in - 1);
}

// The elements of one axis that result `o` is made of, and their shares.
struct Shares {
  int64_t first = 0;
  std::vector<double> parts;
};

Shares bilinear_shares(const Axis& a, int64_t o, bool align) {
  const double offset = align ? 0.0 : 0.5;
  const double at =
      std::max((static_cast<double>(o) + offset) * static_cast<double>(a.scale) - offset, 0.0);
  const int64_t first = std::min(static_cast<int64_t>(at), a.in - 1);
  if (first + 1 >= a.in) return {first, {1.0}};
  const double part = std::min(at - static_cast<double>(first), 1.0);
  return {first, {1.0 - part, part}};
}

Shares antialias_shares(const Axis& a, int64_t o) {
  const double scale = static_cast<double>(a.scale);
  const double support = std::max(scale, 1.0);
  const double centre = scale * (static_cast<double>(o) + 0.5);
  const auto begin = static_cast<int64_t>(std::floor(std::max(centre - support + 0.5, 0.0)));
  const auto end = std::min(static_cast<int64_t>(std::floor(centre + support + 0.5)), a.in);
  Shares s{begin, {}};
  double total = 0;
  for (int64_t i = begin; i < end; ++i) {
    s.parts.push_back(
        std::max(1.0 - std::fabs((static_cast<double>(i) - centre + 0.5) / support), 0.0));
    total += s.parts.back();
  }
  for (double& part : s.parts) part /= total;
  return s;
}

Status cpu_nearest(const Resize& r, const HostTensor& x, const HostTensor& y) {
  const bool floats = is_float(x.dtype);
  for (int64_t i = 0; i < y.numel(); ++i) {
    const int64_t h = nearest_index(r.h, i / r.w.out % r.h.out);
    const int64_t w = nearest_index(r.w, i % r.w.out);
    const int64_t at = (i / r.w.out / r.h.out * r.h.in + h) * r.w.in + w;
    if (floats) {
      y.put(i, x.number(at));
    } else {
      y.put_integer(i, x.integer(at));
    }
  }
  return {};
}

Status cpu(const Node& n, const Host& host) {
  PTERYX_ASSIGN(const Resize r, read_resize(n));
  const HostTensor x = host.host(n.in(kX).id);
  const HostTensor y = host.host(n.out_id());
  const Mode mode = row(n).mode;
  if (mode == Mode::kNearest) return cpu_nearest(r, x, y);
  const auto shares = [&](const Axis& a, int64_t o) {
    return mode == Mode::kBilinear ? bilinear_shares(a, o, r.align) : antialias_shares(a, o);
  };
  std::vector<Shares> columns;
  columns.reserve(static_cast<size_t>(r.w.out));
  for (int64_t o = 0; o < r.w.out; ++o) columns.push_back(shares(r.w, o));
  for (int64_t line = 0; r.w.out > 0 && line < y.numel() / r.w.out; ++line) {
    const Shares h = shares(r.h, line % r.h.out);
    const int64_t plane = line / r.h.out * r.h.in;
    for (int64_t o = 0; o < r.w.out; ++o) {
      const Shares& w = columns[static_cast<size_t>(o)];
      double sum = 0;
      for (size_t i = 0; i < h.parts.size(); ++i) {
        const int64_t at = (plane + h.first + static_cast<int64_t>(i)) * r.w.in + w.first;
        for (size_t j = 0; j < w.parts.size(); ++j)
          sum += h.parts[i] * w.parts[j] * x.number(at + static_cast<int64_t>(j));
      }
      y.put(line * r.w.out + o, sum);
    }
  }
  return {};
}

}  // namespace

void add_upsample(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = args(r),
                     .shape = shape,
                     .plan = plan,
                     .gpu = gpu,
                     .cpu = cpu,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

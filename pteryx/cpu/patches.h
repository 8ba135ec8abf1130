// Images as convolutions read them: with zeros around, and elements a stride apart along the last
// axis side by side, so that what neighbouring results take through one entry of the kernel is
// contiguous.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>

namespace pteryx::cpu {

// Depth, height and width.
struct Window {
  using Sizes = std::array<size_t, 3>;
  Sizes in{1, 1, 1};
  Sizes out{1, 1, 1};
  Sizes kernel{1, 1, 1};
  Sizes stride{1, 1, 1};
  Sizes padding{0, 0, 0};
  Sizes dilation{1, 1, 1};
  Sizes more{0, 0, 0};  // padding at the end alone

  size_t padded(size_t axis) const { return in[axis] + 2 * padding[axis] + more[axis]; }
  size_t reach(size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
  size_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  size_t positions() const { return out[0] * out[1] * out[2]; }
  // A padded plane is [depth, height, phases, phase], element w of a row at [w % stride, w /
  // stride]; phases that no entry of the kernel reads are left out.
  size_t phases() const { return stride[2] < reach(2) ? stride[2] : reach(2); }
  size_t phase() const { return (padded(2) + stride[2] - 1) / stride[2]; }
  size_t row() const { return phases() * phase(); }
  size_t plane() const { return padded(0) * padded(1) * row(); }
  // Where in a padded plane the result at `position` and an entry of the kernel meet: the sum of
  // both.
  size_t start_of(size_t tap) const;
  size_t row_step() const { return stride[1] * row(); }
  size_t plane_step() const { return stride[0] * padded(1) * row(); }
};

// Behind the planes there have to be so many elements more: vectors may be read past the end.
inline constexpr size_t kSpare = 16;

// What of a plane any entry of the kernel reads, without what is around it.
void fill_plane(const Window& w, const float* x, float* padded);
// With zeros around.
void pad_plane(const Window& w, const float* x, float* padded);

}  // namespace pteryx::cpu

// Convolutions of every channel by itself. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "pteryx/cpu/finish.h"
#include "pteryx/cpu/patches.h"

namespace pteryx::cpu {

// Of one channel: its padded plane and its kernel. Row `channel` of the operands of `finish` has
// what becomes of it. `starts` has start_of() of all taps.
void convolve_plane(const Window& w, const size_t* starts, const float* padded, const float* kernel,
                    const Finish& finish, size_t channel, float* y);

// The same of a plane as it is, for square kernels of 3, 5 and 7 where the processor can leave
// lanes of a load out.
bool convolves_directly(const Window& w);
void convolve_directly(const Window& w, const float* x, const float* kernel, const Finish& finish,
                       size_t channel, float* y);

}  // namespace pteryx::cpu

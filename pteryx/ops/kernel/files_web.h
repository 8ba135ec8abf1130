// Kernel files that come to the module from outside. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace pteryx::ops {

// Of what embed_wgsl.py --packed wrote, names and texts by turns, each ended by a zero. It stays
// where it is for as long as the module lives.
void add_kernel_files(std::string_view packed);

}  // namespace pteryx::ops

// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace pteryx {

// So many bytes will be allocated soon, in pieces. A module of WebAssembly asks for them at once:
// browsers and Node take a millisecond and more for each piece by which its memory grows.
void reserve_heap(uint64_t bytes);

}  // namespace pteryx

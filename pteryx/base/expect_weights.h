// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace pteryx {

// From here on a load reads its sources as a whole, and takes so many bytes of memory in pieces.
// The script around a module of WebAssembly then downloads files in order, and its memory grows at
// once: browsers and Node take a millisecond and more for each piece.
void expect_weights(uint64_t host_bytes);

}  // namespace pteryx

// What Highway compiles for: included before any of its headers.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Vectors without a size known to the compiler cannot be members of arrays, which the tiles need.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV | HWY_PPC8)

// AVX-512 with what came after it: products of i16 that are added in one instruction. Highway
// leaves it out unless asked.
#define HWY_WANT_AVX3_DL

// The target without any vector instructions that Highway would choose with g++ before 12.3 has one
// lane; the kernels need four. What it calls broken is the vectorizer of g++ (bug 106322): files
// with kernels are compiled with -fno-tree-vectorize.
#define HWY_BROKEN_EMU128 0

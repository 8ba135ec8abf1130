// Codes of 4 or 8 bits as f32. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace pteryx::cpu {

// Two in a byte and offset by 8, the even ones in its low or in its high half; or one in a byte.
enum class CodeKind : uint8_t { kLowFirst, kHighFirst, kSigned, kUnsigned };

// y = (code - zero) * scale for `count` codes, of which there are whole bytes.
void decode(CodeKind kind, const void* codes, size_t count, float zero, float scale, float* y);

}  // namespace pteryx::cpu

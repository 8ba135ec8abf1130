// A token of a language model, everywhere.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace pteryx {

using TokenId = uint32_t;

}  // namespace pteryx

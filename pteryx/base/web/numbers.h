// Numbers as the script around the module prints and reads them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace pteryx::web {

enum class NumberForm : int32_t {
  kDouble,  // "1.25e-7": the fewest digits that no other double is nearer to
  kFloat,   // the same among floats
  kFixed,   // "12.500": so many digits behind the point
};

// Of a finite number from 0 on.
std::string print_number(double value, NumberForm form, int digits = 0);

}  // namespace pteryx::web

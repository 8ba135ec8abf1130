// Numbers as text. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string_view>

namespace pteryx {

// The double nearest to what a text spells, which is_decimal(): infinity where it is too large, 0
// where it is too small.
double decimal_value(std::string_view text);

// Whether all of a text is a number as in JSON, whose parts before and behind the point may also be
// missing and which may have a '+': "12", "-.5", "+1.e5".
bool is_decimal(std::string_view text);

// The same with "inf", "infinity" and "nan" in any case and with either sign.
std::optional<double> read_real(std::string_view text);

}  // namespace pteryx

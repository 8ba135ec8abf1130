// What a message quotes of text from outside. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pteryx {

inline constexpr size_t kLongestExcerpt = 200;  // bytes, without the dots

// The first line, at most kLongestExcerpt bytes of it; "..." stands for what is left out. Control
// characters become '?': a message must not steer the terminal it is shown on.
std::string excerpt(std::string_view text);

}  // namespace pteryx

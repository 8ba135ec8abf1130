// Lines of kernel files and what stands in them. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/ops/kernel/expand.h"

namespace pteryx::ops {

std::string_view trimmed(std::string_view s);
// The first word of s, which loses it.
std::string_view take_word(std::string_view& s);
bool is_name(std::string_view s);
std::optional<int64_t> parse_int(std::string_view s);
std::vector<std::string_view> split_lines(std::string_view text);

// A line that is a directive, "#if rows > 1": its name and the rest. Both empty elsewhere.
struct Directive {
  std::string_view name;
  std::string_view rest;
};
Directive directive(std::string_view line);

std::optional<KernelTensor::Access> access_of(std::string_view word);
constexpr bool access_is_raw(KernelTensor::Access a) {
  return a == KernelTensor::Access::kRaw || a == KernelTensor::Access::kRawWrite;
}
// The option of a tensor's element type is its name and this.
inline constexpr std::string_view kTypeSuffix = "_type";

// The option that a line declares: of an #option, or the type of a #tensor; nothing where it
// declares none. Errors: kInvalidArgument, without a place.
Result<std::optional<OptionDeclaration>> parse_declaration(const Directive& d);

}  // namespace pteryx::ops

// The value table of a method -> ValueRecords.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/program/method.h"
#include "pteryx/program/program.h"
#include "pteryx/program/reader.h"

namespace pteryx::pte {
enum class DeviceType : int8_t;
}

namespace pteryx::program {

// Errors: kInvalidProgram, kUnsupported; the message starts with the value's index.
Result<std::vector<ValueRecord>> read_values(const pte::ExecutionPlan& plan,
                                             std::span<const uint64_t> buffer_sizes,
                                             const MethodSources& sources, Budget& budget);

// Checks that each item is in [0, values). `what` names an item in messages.
Status check_indices(std::string_view what, const flatbuffers::Vector<int32_t>& list,
                     size_t values);

std::string_view kind_name(const ValueRecord& value);  // "an integer", "a list of tensors"
bool is_list(const ValueRecord& value);
std::string device_name(pte::DeviceType type);

}  // namespace pteryx::program

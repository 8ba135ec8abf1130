// Safetensors files, alone and as the shards of a folder. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/checkpoint.h"

namespace pteryx::convert {

inline constexpr uint64_t kLargestSafetensorsHeader = 100'000'000;

// Adds the tensors of one file. Errors: kIo, kInvalidProgram (header, ranges that overlap or leave
// the file, a tensor that is there already).
Status parse_safetensors(const SourcePtr& file, Checkpoint& into);

// The weight files of a folder, by path: model.safetensors, or model.safetensors.index.json and the
// shards it names. Errors: kIo, kInvalidProgram.
Result<std::vector<std::string>> safetensors_files(const std::string& folder);

// The tensors of those files. Errors: those above.
Result<Checkpoint> open_safetensors(const std::string& folder);

}  // namespace pteryx::convert

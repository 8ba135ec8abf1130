// Safetensors files, alone and as the shards of a folder. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/source.h"

namespace pteryx::convert {

// Adds the tensors of one file, which must outlive `into`; `what` names it in messages. Errors:
// kInvalidProgram (header, ranges that overlap or leave the file, a name that is there already).
Status parse_safetensors(Bytes file, std::string_view what, Checkpoint& into);

// Where a folder keeps its weights, and its files mapped: model.safetensors, or the shards that
// model.safetensors.index.json names. Errors: those above, kIo.
Result<Checkpoint> open_safetensors(const std::string& folder);

}  // namespace pteryx::convert

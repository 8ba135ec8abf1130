// JSON files that the tool reads, as the documents that it also writes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "pteryx/base/bytes.h"
#include "pteryx/base/json.h"
#include "pteryx/base/status.h"

namespace pteryx::cli {

// As parse_json.
Result<nlohmann::json> read_document(std::string_view text, std::string_view what,
                                     const JsonRules& rules = {});
Result<nlohmann::json> read_document(Bytes bytes, std::string_view what,
                                     const JsonRules& rules = {});

}  // namespace pteryx::cli

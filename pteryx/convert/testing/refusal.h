// What a conversion that is refused leaves: a message, and no file. SPDX-License-Identifier:
// BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include "pteryx/base/status.h"
#include "pteryx/convert/convert.h"

namespace pteryx::convert::testing {

// The message has `text` in it.
void expect_refused(const std::string& source, const ConvertOptions& options, Code code,
                    std::string_view text);
void expect_converted(const std::string& source, const ConvertOptions& options = {});

}  // namespace pteryx::convert::testing

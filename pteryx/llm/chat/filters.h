// The filters that take plain arguments. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "pteryx/llm/chat/builtin.h"

namespace pteryx::llm::chat {

const std::vector<Builtin>& plain_filters();

}  // namespace pteryx::llm::chat

// pteryx chat. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "command.h"

namespace pteryx::cli {

void add_chat(CLI::App& app, Action& action);

}  // namespace pteryx::cli

// The commands of a chat: what there is, and what a line asks for.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/status.h"

namespace pteryx::cli {

enum class ChatVerb : uint8_t {
  kHelp,
  kReset,
  kRegenerate,
  kUndo,
  kSystem,
  kSet,
  kInfo,
  kSave,
  kLoad,
  kQuit,
};

struct ChatCommand {
  ChatVerb verb = ChatVerb::kHelp;
  std::string argument;  // what follows the name
};

// Errors: kInvalidArgument for a name that is none, and for an argument that is missing or too
// much.
Result<ChatCommand> parse_chat_command(std::string_view line);
std::string chat_help();
// Of names of commands, settings and files.
std::vector<std::string> complete_chat_line(std::string_view beginning);

// What /set takes, as they are called on the command line.
const std::vector<std::string>& chat_settings();

}  // namespace pteryx::cli

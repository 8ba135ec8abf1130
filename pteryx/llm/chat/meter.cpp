// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/meter.h"

#include <fmt/format.h>

namespace pteryx::llm::chat {

Status Meter::out_of_work() const {
  return invalid_argument(
      fmt::format("the template takes more work than allowed ({} units)", most_work_));
}

Status Meter::out_of_memory() const {
  return invalid_argument(
      fmt::format("the template takes more memory than allowed ({} bytes)", most_bytes_));
}

}  // namespace pteryx::llm::chat

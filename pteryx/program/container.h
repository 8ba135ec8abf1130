// The outer layer of a .pte file: header, verified FlatBuffer, segments.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx::pte {
struct Program;
}

namespace pteryx::program {

struct Container {
  const pte::Program* root = nullptr;  // inside the file
  uint64_t flatbuffer_bytes = 0;
  std::vector<Bytes> segments;
};

// The file starts at an address aligned to 16. Errors: kInvalidProgram, kUnsupported (another
// generation of the format).
Result<Container> open_container(Bytes file);

}  // namespace pteryx::program

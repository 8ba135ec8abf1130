// Where a program says what is computed: sizes of tensors, scalars, ids of arguments, names of
// operators. A change there leaves the file whole, so that it gets past the reader to the code that
// looks at what the program says.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pteryx::fuzz {

struct Fields {
  struct Place {
    size_t at = 0;
    size_t size = 0;
  };
  std::vector<Place> numbers;  // scalars and ids, of 1, 4 or 8 bytes
  std::vector<Place> sizes;    // of tensors, 4 bytes each
  std::vector<Place> planned;  // bytes that the file plans for tensors, 8 bytes each
  std::vector<Place> names;    // of operators; size is that of the text
};

// Of a program and its delegates; empty for anything else.
Fields find_fields(const std::string& file);

}  // namespace pteryx::fuzz

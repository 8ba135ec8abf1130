// Writes a .pte of one delegated method, its constant methods and its blobs.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "pteryx/base/dims.h"
#include "pteryx/base/dtype.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/matrix.h"
#include "pteryx/convert/model.h"
#include "pteryx/convert/vk_graph.h"

namespace pteryx::convert {

// A tensor at the method's boundary; the last dim may be smaller when dynamic.
struct Boundary {
  DType type = DType::kF32;
  Dims dims;
  bool dynamic = false;
};

// A method without inputs that answers with constants.
struct Constants {
  std::string name;
  std::vector<std::variant<int64_t, bool>> values;
};

struct ProgramSpec {
  VkGraph graph;
  std::vector<Blob> blobs;  // what the graph's constants are of, named by their SHA-256
  std::vector<Boundary> inputs, outputs;
  std::string input_tree;  // how the inputs nested in the Python call, as PyTorch writes it
  std::vector<Constants> constants;
  std::vector<Attachment> attachments;
};

// How far it is; false stops.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

// Blobs are made and written on so many threads (0: as many as pay); the file is the
// same whatever their number. It appears when it is complete, or not at all. `progress` is called
// from this thread. Errors: kIo, kCancelled, those of the blobs.
Result<uint64_t> write_program(const ProgramSpec& spec, const std::string& path,
                               const Progress& progress, uint32_t threads = 0);

}  // namespace pteryx::convert

// Inputs for measurements: random numbers that a method takes. SPDX-License-Identifier:
// BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "pteryx/pteryx.h"

namespace pteryx::cli {

// By the number of the input.
using Shapes = std::map<size_t, Dims>;
// --shape 0=1x3x224x224, any number of times.
void add_shapes(CLI::App& app, std::vector<std::string>& shapes);
Result<Shapes> parse_shapes(const std::vector<std::string>& texts);

struct RandomInputs {
  std::vector<std::vector<std::byte>> memory;  // that the values point at
  std::vector<Value> values;
  std::string text;  // "f32 [1, 3, 224, 224], i64 [1]"
};
// Floats from -1 to 1, indices below the bound that the program has for them, bytes of any value,
// and 0 for other integers, which may be sizes or positions. At the bound where `shapes` has no
// other size. Errors: kInvalidArgument for sizes that the method does not take.
Result<RandomInputs> random_inputs(const MethodInfo& method, const Shapes& shapes);

// The methods to measure: the one asked for, or all that compute something. Errors:
// kInvalidArgument.
Result<std::vector<const MethodInfo*>> methods_to_measure(const Session& session,
                                                          const std::string& wanted,
                                                          const std::string& path);

}  // namespace pteryx::cli

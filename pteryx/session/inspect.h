// What a program holds and how it would run, told without a GPU.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pteryx/pteryx.h"
#include "pteryx/session/layout.h"
#include "pteryx/session/limits.h"

namespace pteryx {

namespace program {
class Program;
}

// Capabilities and precision to plan with, and the routes that `routes` ("family:route,...")
// forces. Errors: kInvalidArgument for a family or route that does not exist.
Result<ops::PlanContext> make_context(const gpu::Caps& caps, const std::string& routes,
                                      Precision precision = Precision::kF32);

// Of a method where nobody asks for one: f16 for language models, f32 for others.
Precision usual_precision(const graph::Graph& g);

MethodInfo describe_method(const graph::Graph& g, const Layout& layout);

struct OperatorUse {
  std::string name;
  uint32_t count = 0;
  uint32_t gpu = 0;
  uint32_t cpu = 0;
  uint32_t free = 0;  // views and scalar arithmetic: no work of their own
  uint32_t unsupported = 0;
};
struct Weight {
  std::string name;
  DType dtype = DType::kF32;
  Dims dims;
  uint64_t bytes = 0;
  bool state = false;
};
struct Split {
  Weight weight;
  size_t parts = 0;
};
// The graph for those who draw it: nodes in the order in which they run, and behind them inputs,
// outputs and constants; edges are pairs of positions.
struct Drawing {
  enum class Kind : uint8_t { kOperator, kInput, kOutput, kConstant };
  struct Node {
    Kind kind = Kind::kOperator;
    std::string name;                         // of the operator, or of the value
    std::string shape;                        // "f32 [1, 64]", of what it gives
    uint32_t OperatorUse::* place = nullptr;  // of an operator: which count it belongs to
  };
  std::vector<Node> nodes;
  std::vector<std::pair<uint32_t, uint32_t>> edges;
};
struct MethodReport {
  MethodInfo info;
  bool metadata = false;         // no instructions: its outputs are constants
  std::vector<Value> constants;  // of a metadata method
  size_t delegates = 0;
  size_t nodes = 0;
  std::vector<OperatorUse> operators;
  std::vector<Weight> weights;  // largest first
  MemoryNeed memory;            // with a GPU
  MemoryNeed cpu_memory;        // without one
  std::vector<Split> splits;    // weights in parts, for the limits of the options
  std::vector<Excess> excess;   // what does not fit these limits
  std::string problem;          // why it cannot run, or ""
  std::string dot;              // the graph for Graphviz
  Drawing drawing;
};
struct ProgramReport {
  std::string path;
  uint64_t file_bytes = 0;
  size_t named_data = 0;
  std::vector<MethodReport> methods;
};

struct InspectOptions {
  std::vector<std::string> data_files;
  bool dot = false;
  bool drawing = false;
  std::optional<Precision> precision = {};  // none: usual_precision
  std::string routes = {};
  std::optional<gpu::Caps> limits = {};  // of a device to plan for; none: there are no limits
};
// Whether a program's methods are those of a language model, which Steps::find() would find in it.
// Errors: those of reading the file.
Result<bool> is_language_model(const std::string& path, const std::vector<std::string>& data_files);

// Errors: those of reading the file. Operators that cannot run are in the report.
Result<ProgramReport> inspect(const std::string& path, const InspectOptions& options);
// The same of a program that was read, whose files have this name.
Result<ProgramReport> inspect(const program::Program& program, const std::string& name,
                              const InspectOptions& options);

}  // namespace pteryx

// Operators found and checked; where each node runs. SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pteryx/ops/schema.h"
#include "pteryx/ops/table.h"
#include "pteryx/session/layout/problems.h"
#include "pteryx/session/layout/stages.h"

namespace pteryx::layout {
namespace {

using ops::OpClass;

class Placement : Stage {
 public:
  using Stage::Stage;

  Status resolve() {
    std::vector<Problem> unknown;
    for (const graph::Node& n : g_.nodes) {
      const bool op = n.kind == graph::Node::Kind::kOp;
      if (op && n.op == nullptr)
        unknown.push_back({n.spelling, "unknown operator " + describe_call(g_, n)});
      l_.defs.push_back(op && n.op != nullptr ? &ops::op(*n.op) : nullptr);
    }
    // Report type problems together with unknown names, so that one load shows all of them.
    std::optional<Status> first_error;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (l_.defs[i] == nullptr) continue;
      Status s = ops::check_schema(g_, g_.nodes[i], *l_.defs[i]);
      if (s.ok()) continue;
      if (s.code() == Code::kUnsupported)
        unknown.push_back({g_.nodes[i].spelling, std::string(s.message())});
      else if (!first_error)
        first_error = std::move(s);
    }
    if (first_error) return std::move(*first_error);
    if (!unknown.empty()) return list_unsupported(g_, unknown);
    return {};
  }

  Status place_nodes() {
    std::vector<Problem> nowhere;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const ops::OpDef* def = l_.defs[i];
      Place p = Place::kNothing;
      if (def == nullptr) {
        p = Place::kNothing;
      } else if (def->op_class == OpClass::kScalar) {
        p = Place::kScalar;
      } else if (def->op_class == OpClass::kItem) {
        // Nobody reads a scalar that the exporter made a literal.
        const bool live = std::holds_alternative<graph::LiveScalar>(g_[g_.nodes[i].args.back()]);
        p = live ? Place::kItem : Place::kNothing;
      } else {
        const ops::Node n(g_, g_.nodes[i], *def, l_.bound);
        const bool gpu = ops::runs_on_gpu(n);
        const bool cpu = def->cpu != nullptr;
        p = gpu && !(options_.cpu_only && cpu) ? Place::kGpu : Place::kCpu;
        if (!gpu && !cpu)
          nowhere.push_back({g_.nodes[i].spelling,
                             "no kernel for these types: " + describe_call(g_, g_.nodes[i])});
      }
      l_.place.push_back(p);
    }
    if (!nowhere.empty()) return list_unsupported(g_, nowhere);
    return {};
  }
};

}  // namespace

Status resolve(Draft& d) { return Placement(d).resolve(); }

Status place(Draft& d) { return Placement(d).place_nodes(); }

}  // namespace pteryx::layout

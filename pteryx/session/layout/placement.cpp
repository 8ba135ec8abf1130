// Operators found and checked; where each node runs. SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/ops/schema.h"
#include "pteryx/ops/table.h"
#include "pteryx/session/layout/problems.h"
#include "pteryx/session/layout/stages.h"

namespace pteryx::layout {
namespace {

using graph::ValueId;
using ops::OpClass;

class Placement : Stage {
 public:
  using Stage::Stage;

  // Goes on behind what cannot run, so that one load shows all of it.
  Status place_nodes() {
    const ops::Live bound = largest(g_);
    std::vector<Problem> problems;
    std::optional<Status> first_error;
    for (const graph::Node& n : g_.nodes) {
      const bool op = n.kind == graph::Node::Kind::kOp;
      const ops::OpDef* def = op && n.op != nullptr ? &ops::op(*n.op) : nullptr;
      l_.defs.push_back(def);
      l_.place.push_back(Place::kNothing);
      if (!op) continue;
      if (def == nullptr) {
        problems.push_back({n.spelling, "unknown operator " + describe_call(g_, n)});
        continue;
      }
      Status s = ops::check_schema(g_, n, *def);
      if (s.code() == Code::kUnsupported) {
        problems.push_back({n.spelling, std::string(s.message())});
      } else if (!s.ok()) {
        if (!first_error) first_error = std::move(s);
      } else if (const auto place = place_of(ops::Node(g_, n, *def, bound))) {
        l_.place.back() = *place;
      } else {
        problems.push_back(
            {n.spelling, fmt::format("no {}kernel for these types: {}",
                                     context_.caps.cpu ? "CPU " : "", describe_call(g_, n))});
      }
    }
    if (first_error) return std::move(*first_error);
    if (!problems.empty()) return list_unsupported(g_, problems);
    PTERYX_TRY(check_supported("input", g_.inputs));
    return check_supported("output", g_.outputs);
  }

 private:
  // None: nowhere.
  std::optional<Place> place_of(const ops::Node& n) const {
    switch (n.def().op_class) {
      case OpClass::kScalar: return Place::kScalar;
      case OpClass::kItem: {
        // Nobody reads a scalar that the exporter made a literal.
        const bool live = std::holds_alternative<graph::LiveScalar>(g_[n.out_id()]);
        return live ? Place::kItem : Place::kNothing;
      }
      default: break;
    }
    const bool gpu = !context_.caps.cpu && ops::runs_on_gpu(n);
    const bool cpu = n.def().cpu != nullptr;
    if (!gpu && !cpu) return std::nullopt;
    return gpu ? Place::kGpu : Place::kCpu;
  }

  // What no node uses.
  Status check_supported(std::string_view what, const std::vector<ValueId>& ids) const {
    for (size_t i = 0; i < ids.size(); ++i) {
      const graph::Tensor* t = g_.tensor(ids[i]);
      if (t == nullptr || t->unsupported.empty()) continue;
      return unsupported(fmt::format("{} {} of '{}' ({}): {}", what, i, g_.method, g_.label(ids[i]),
                                     t->unsupported));
    }
    return {};
  }
};

}  // namespace

Status place(Draft& d) { return Placement(d).place_nodes(); }

}  // namespace pteryx::layout

// Checks a node against its op's schema. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/schema.h"

#include <algorithm>
#include <span>

namespace pteryx::ops {
namespace {

using graph::kNoValue;

bool is_number(const graph::Value& v) {
  return std::holds_alternative<int64_t>(v) || std::holds_alternative<double>(v) ||
         std::holds_alternative<bool>(v) || std::holds_alternative<graph::LiveScalar>(v);
}

std::string_view kind_name(ArgKind kind) {
  switch (kind) {
    case ArgKind::kTensor: return "a tensor";
    case ArgKind::kTensorList: return "a list of tensors";
    case ArgKind::kNumber: return "a number";
    case ArgKind::kInts: return "a list of ints";
    case ArgKind::kNumbers: return "a list of numbers";
    case ArgKind::kText: return "a string";
    case ArgKind::kAny:
    case ArgKind::kFactory: return "anything";
    case ArgKind::kOut: return "a result tensor";
    case ArgKind::kOutList: return "a list of result tensors";
    case ArgKind::kOutScalar: return "a result scalar";
  }
  return "";
}

std::string type_names(DTypes set) {
  std::string text;
  for (uint32_t i = 0; i <= static_cast<uint32_t>(DType::kU64); ++i) {
    if ((set & (1U << i)) == 0) continue;
    if (!text.empty()) text += ", ";
    text += name(static_cast<DType>(i));
  }
  return text;
}

// The checker of one node.
struct Check {
  const graph::Graph& g;
  const graph::Node& n;
  const OpDef& def;

  Status wrong(const Arg& a, ValueId id, std::string_view what, std::string_view expected,
               std::string_view got, Code code = Code::kInvalidProgram) const {
    return {code, fmt::format("{}: {} ({}) {}: expected {}, got {}", graph::describe(g, n), a.name,
                              id == kNoValue ? "None" : g.label(id), what, expected, got)};
  }

  Status type(const Arg& a, ValueId id, DTypes types) const {
    const graph::Tensor& t = *g.tensor(id);
    if (!t.unsupported.empty()) {
      return unsupported(fmt::format("{}: {} ({}): {}", graph::describe(g, n), a.name, g.label(id),
                                     t.unsupported));
    }
    if (has(types, t.dtype)) return {};
    return wrong(a, id, "type", type_names(types), name(t.dtype), Code::kUnsupported);
  }

  Status tensor(const Arg& a, ValueId id) const {
    const graph::Tensor& t = *g.tensor(id);
    PTERYX_TRY(type(a, id, a.types));
    if (t.max.rank() < a.min_rank || t.max.rank() > a.max_rank) {
      return wrong(a, id, "rank", fmt::format("{} to {}", a.min_rank, a.max_rank),
                   std::to_string(t.max.rank()));
    }
    return {};
  }

  Status list_of_tensors(const Arg& a, ValueId id) const {
    const auto* list = std::get_if<graph::ValueList>(&g[id]);
    if (list == nullptr) {
      const auto* ints = std::get_if<graph::IntList>(&g[id]);
      if (ints != nullptr && ints->items.empty()) return {};  // the exporter's empty list
      return wrong(a, id, "kind", kind_name(a.kind), graph::kind_name(g[id]));
    }
    const bool results = a.kind == ArgKind::kOutList;
    if (results && a.min_rank != 0 && list->items.size() != a.min_rank) {
      return wrong(a, id, "length", std::to_string(a.min_rank), std::to_string(list->items.size()));
    }
    for (size_t i = 0; i < list->items.size(); ++i) {
      const ValueId item = list->items[i];
      if (item == kNoValue || std::holds_alternative<graph::Null>(g[item])) continue;
      if (g.tensor(item) == nullptr)
        return wrong(a, item, "kind", "a tensor", graph::kind_name(g[item]));
      PTERYX_TRY(results ? result(a, list->items, i) : tensor(a, item));
    }
    return {};
  }

  // Member i of a list of results. Each is written on its own, while arguments are read.
  Status result(const Arg& a, std::span<const ValueId> results, size_t i) const {
    const ValueId id = results[i];
    const bool first = i == 0 || a.more_types == 0;
    PTERYX_TRY(type(a, id, first ? a.types : a.more_types));
    const graph::Tensor* x = g.tensor(n.args[0]);
    if (first && a.like_x && x != nullptr && x->dtype != g.tensor(id)->dtype)
      return wrong(a, id, "type", name(x->dtype), name(g.tensor(id)->dtype));
    const auto others = results.first(i);
    if (std::ranges::find(others, id) != others.end())
      return wrong(a, id, "member", "each result once", "one twice");
    for (size_t arg = 0; arg + 1 < n.args.size(); ++arg) {
      if (def.args[arg].mutated) continue;
      const auto* list = std::get_if<graph::ValueList>(&g[n.args[arg]]);
      const bool read = list == nullptr ? n.args[arg] == id
                                        : std::ranges::find(list->items, id) != list->items.end();
      if (read)
        return wrong(a, id, "member", "a result",
                     fmt::format("the argument {}", def.args[arg].name));
    }
    return {};
  }

  Status list_of_numbers(const Arg& a, ValueId id) const {
    const graph::Value& v = g[id];
    if (std::holds_alternative<graph::IntList>(v)) return {};
    if (a.kind == ArgKind::kNumbers && std::holds_alternative<graph::DoubleList>(v)) return {};
    if (const auto* list = std::get_if<graph::ValueList>(&v)) {
      for (const ValueId item : list->items) {
        if (item == kNoValue || !is_number(g[item])) {
          return wrong(a, id, "item", "a number",
                       item == kNoValue ? "None" : graph::kind_name(g[item]));
        }
      }
      return {};
    }
    if (a.kind == ArgKind::kInts && is_number(v)) return {};
    return wrong(a, id, "kind", kind_name(a.kind), graph::kind_name(v));
  }

  Status arg(const Arg& a, ValueId id) const {
    const graph::Value& v = g[id];
    if (a.kind == ArgKind::kAny || a.kind == ArgKind::kFactory) return {};
    if (a.optional && std::holds_alternative<graph::Null>(v)) return {};
    bool right = false;
    switch (a.kind) {
      case ArgKind::kTensor:
      case ArgKind::kOut:
        if (g.tensor(id) != nullptr) return tensor(a, id);
        break;
      case ArgKind::kTensorList:
      case ArgKind::kOutList: return list_of_tensors(a, id);
      case ArgKind::kInts:
      case ArgKind::kNumbers: return list_of_numbers(a, id);
      case ArgKind::kNumber: right = is_number(v); break;
      case ArgKind::kText: right = std::holds_alternative<std::string>(v); break;
      case ArgKind::kOutScalar:
        // An exporter may have folded the result to a literal: the call is then without effect.
        right = std::holds_alternative<graph::LiveScalar>(v) || is_number(v);
        break;
      default: right = true; break;
    }
    if (right) return {};
    return wrong(a, id, "kind", kind_name(a.kind), graph::kind_name(v));
  }
};

bool gpu_holds(const Arg& a, DType t) { return has(kGpuTypes, t) || (a.index && t == DType::kI64); }

}  // namespace

Status check_schema(const graph::Graph& g, const graph::Node& n, const OpDef& def) {
  if (n.args.size() != def.args.size()) {
    return invalid_program(fmt::format("{}: expected {} arguments, got {}", graph::describe(g, n),
                                       def.args.size(), n.args.size()));
  }
  const Check check{g, n, def};
  for (size_t i = 0; i < def.args.size(); ++i) PTERYX_TRY(check.arg(def.args[i], n.args[i]));
  return {};
}

bool runs_on_gpu(const Node& n) {
  const OpDef& def = n.def();
  if (def.plan == nullptr) return false;
  const graph::Graph& g = n.graph();
  for (size_t i = 0; i < def.args.size(); ++i) {
    const ValueId id = n.node().args[i];
    if (const auto* t = g.tensor(id); t != nullptr && !gpu_holds(def.args[i], t->dtype))
      return false;
    if (const auto* list = std::get_if<graph::ValueList>(&g[id])) {
      for (const ValueId item : list->items) {
        if (item == kNoValue) continue;
        if (const auto* t = g.tensor(item); t != nullptr && !gpu_holds(def.args[i], t->dtype))
          return false;
      }
    }
  }
  return def.gpu == nullptr || def.gpu(n);
}

}  // namespace pteryx::ops

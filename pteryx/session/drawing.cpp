// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/drawing.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "pteryx/ops/table.h"

namespace pteryx {
namespace {

using graph::Graph;
using graph::ValueId;

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string to_dot(const Graph& g) {
  std::string text = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=\"Helvetica\"];\n",
                                 escape(g.method));
  std::vector<bool> drawn(g.values.size());
  const auto draw = [&](ValueId id) {
    if (drawn[graph::index(id)]) return;
    drawn[graph::index(id)] = true;
    const graph::Tensor& t = *g.tensor(id);
    text += fmt::format("  v{} [label=\"{}\\n{} {}\", shape={}];\n", graph::index(id),
                        escape(g.label(id)), name(t.dtype), to_string(t.max),
                        t.has_data() || t.state ? "cylinder" : "ellipse");
  };
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const graph::Node& n = g.nodes[i];
    text += fmt::format("  n{} [label=\"{}\", style=filled, fillcolor=lightgrey];\n", i,
                        escape(n.op != nullptr ? n.op->name : n.spelling));
    for (size_t a = 0; a < n.args.size(); ++a) {
      const bool result = a + 1 == n.args.size();
      for_each_tensor(g, n.args[a], [&](ValueId id) {
        draw(id);
        text += result ? fmt::format("  n{} -> v{};\n", i, graph::index(id))
                       : fmt::format("  v{} -> n{};\n", graph::index(id), i);
      });
    }
  }
  return text + "}\n";
}

Drawing draw(const Graph& g, const gpu::Caps& caps) {
  constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();
  Drawing d;
  const ops::Live bound = largest(g);
  std::vector<uint32_t> maker(g.values.size(), kNobody);
  const auto shape_of = [&](ValueId id) {
    const graph::Tensor& t = *g.tensor(id);
    return fmt::format("{} {}", name(t.dtype), to_string(t.max));
  };
  const auto add = [&](Drawing::Node node) {
    d.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(d.nodes.size() - 1);
  };
  for (const graph::Node& n : g.nodes) {
    const ops::OpDef* const def = n.op == nullptr ? nullptr : &ops::op(*n.op);
    Drawing::Node node{.name = std::string(n.op != nullptr ? n.op->name : n.spelling),
                       .shape = {},
                       .place = n.kind == graph::Node::Kind::kOp ? count_of(g, n, def, bound, caps)
                                                                 : &OperatorUse::free};
    if (!n.args.empty()) {
      for_each_tensor(g, n.args.back(), [&](ValueId id) {
        if (node.shape.empty()) node.shape = shape_of(id);
      });
    }
    add(std::move(node));
  }
  const auto source_of = [&](ValueId id) {
    uint32_t& at = maker[graph::index(id)];
    if (at != kNobody) return at;
    const graph::Tensor& t = *g.tensor(id);
    const bool constant = t.has_data() || t.state;
    at = add({.kind = constant ? Drawing::Kind::kConstant : Drawing::Kind::kInput,
              .name = std::string(g.label(id)),
              .shape = shape_of(id)});
    return at;
  };
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    const graph::Node& n = g.nodes[i];
    for (size_t a = 0; a < n.args.size(); ++a) {
      for_each_tensor(g, n.args[a], [&](ValueId id) {
        if (a + 1 == n.args.size()) {
          maker[graph::index(id)] = i;
        } else {
          d.edges.emplace_back(source_of(id), i);
        }
      });
    }
  }
  for (const ValueId id : g.outputs) {
    if (g.tensor(id) == nullptr) continue;
    const uint32_t from = source_of(id);
    d.edges.emplace_back(from, add({.kind = Drawing::Kind::kOutput,
                                    .name = std::string(g.label(id)),
                                    .shape = shape_of(id)}));
  }
  return d;
}

}  // namespace pteryx

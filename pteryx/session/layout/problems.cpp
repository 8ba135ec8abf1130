// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/layout/problems.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "pteryx/base/order.h"
#include "pteryx/session/layout.h"

namespace pteryx::layout {

using graph::ValueId;

std::string describe_call(const graph::Graph& g, const graph::Node& n) {
  std::string text = graph::describe(g, n) + "(";
  bool first = true;
  for (const ValueId id : n.args) {
    for_each_tensor(g, id, [&](ValueId t) {
      const graph::Tensor& tensor = *g.tensor(t);
      text += first ? "" : ", ";
      text += tensor.unsupported.empty()
                  ? fmt::format("{}{}", name(tensor.dtype), to_string(tensor.max))
                  : tensor.unsupported;
      first = false;
    });
  }
  return text + ")";
}

Status list_unsupported(const graph::Graph& g, const std::vector<Problem>& calls) {
  struct Line {
    size_t count = 0;
    const Problem* first = nullptr;
  };
  std::vector<Line> lines;
  for (const Problem& p : calls) {
    auto at = std::ranges::find_if(lines, [&](const Line& l) { return l.first->op == p.op; });
    if (at == lines.end()) at = lines.insert(at, {0, &p});
    ++at->count;
  }
  const std::vector<uint32_t> order = sorted_places(
      lines.size(), [&](uint32_t a, uint32_t b) { return lines[a].count > lines[b].count; });
  const auto counted = [](size_t n) { return fmt::format("{} call{}", n, n == 1 ? "" : "s"); };
  std::string text =
      fmt::format("method '{}' has {} that Pteryx cannot run:", g.method, counted(calls.size()));
  for (const uint32_t i : order) {
    const Line& l = lines[i];
    text += fmt::format("\n  {} of {}: {}", counted(l.count), l.first->op, l.first->text);
  }
  return unsupported(text);
}

}  // namespace pteryx::layout

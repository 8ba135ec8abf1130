// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/build/emitter.h"

#include <utility>

#include <fmt/format.h>

namespace pteryx::graph {

ValueId Emitter::add(Value v, std::string label) {
  g_.values.push_back(std::move(v));
  g_.labels.push_back(std::move(label));
  return ValueId{static_cast<uint32_t>(g_.values.size() - 1)};
}

std::string_view Emitter::intern(std::string_view spelling) {
  const auto it = interned_.find(spelling);
  if (it != interned_.end()) return it->second;
  const std::string_view stable = g_.spellings.emplace_back(spelling);
  interned_.emplace(stable, stable);
  return stable;
}

void Emitter::emit(std::string_view spelling, std::vector<ValueId> args) {
  const OpInfo* info = ops_.find(spelling);
  const auto* result = args.empty() ? nullptr : std::get_if<Tensor>(&g_.values[index(args.back())]);
  for (size_t a = 0; result != nullptr && a + 1 < args.size(); ++a) {
    const bool in_place = info != nullptr && info->mutates(a);
    if (args[a] != args.back() || in_place) continue;
    const ValueId home = args.back();
    args.back() =
        add(Tensor{.dtype = result->dtype, .max = result->max, .data = {}, .dim_order = {}},
            fmt::format("new {}", g_.label(home)));
    append(spelling, args);
    append(kCopyOp, {args.back(), home});
    return;
  }
  append(spelling, std::move(args));
}

void Emitter::append(std::string_view spelling, std::vector<ValueId> args) {
  Node n;
  n.spelling = intern(spelling);
  n.op = ops_.find(n.spelling);
  n.args = std::move(args);
  n.delegate = delegate_;
  n.call = call_;
  mark_state(n);
  g_.nodes.push_back(std::move(n));
}

// A constant that is written becomes state: it keeps its contents between runs.
void Emitter::mark_state(const Node& n) {
  const auto mark = [&](ValueId id) {
    if (id == kNoValue) return;
    auto* t = std::get_if<Tensor>(&g_.values[index(id)]);
    if (t != nullptr && t->has_data()) t->state = true;
  };
  if (n.args.empty()) return;
  for (size_t a = 0; n.op != nullptr && a < n.args.size(); ++a) {
    if (n.op->mutates(a)) mark(n.args[a]);
  }
  mark(n.args.back());
  if (const auto* list = std::get_if<ValueList>(&g_[n.args.back()])) {
    for (const ValueId id : list->items) mark(id);
  }
}

void Emitter::emit_jump(ValueId condition, uint32_t instruction) {
  Node n;
  n.kind = Node::Kind::kJumpFalse;
  n.spelling = intern("jump_false");
  n.args = {condition};
  n.target = instruction;
  n.call = call_;
  g_.has_jumps = true;
  g_.nodes.push_back(std::move(n));
}

}  // namespace pteryx::graph

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/fuse/calls.h"

#include <algorithm>
#include <span>

#include "pteryx/ops/table.h"

namespace pteryx::fuse {

using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about

namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);

size_t place_of(const OpInfo* info, std::string_view name) {
  if (info == nullptr) return kNowhere;
  const std::span<const ops::Arg> args = ops::op(*info).args;
  const auto it = std::ranges::find(args, name, &ops::Arg::name);
  return it == args.end() ? kNowhere : static_cast<size_t>(it - args.begin());
}

}  // namespace

ValueId argument(const Node& n, std::string_view name) {
  const size_t i = place_of(n.op, name);
  return i < n.args.size() ? n.args[i] : kNoValue;
}

void set_argument(Node& n, std::string_view name, ValueId value) {
  const size_t i = place_of(n.op, name);
  if (i < n.args.size()) n.args[i] = value;
}

bool set_call(Graph& g, Node& n, const OpLookup& ops, std::string_view op,
              std::initializer_list<Named> args) {
  const OpInfo* info = ops.find(op);
  if (info == nullptr) return false;
  n.op = info;
  n.spelling = info->name;
  n.args.assign(ops::op(*info).args.size(), kNoValue);
  for (const Named& a : args) set_argument(n, a.name, a.value);
  for (ValueId& id : n.args) {
    if (id == kNoValue) id = g.add(Null{}, "None");
  }
  return true;
}

}  // namespace pteryx::fuse

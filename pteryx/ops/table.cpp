// The operator table and the look-up by spelling. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/table.h"

#include <memory>
#include <unordered_map>

#include "pteryx/ops/families.h"

namespace pteryx::ops {
namespace {

struct Table final : graph::OpLookup {
  Table() {
    for (const Family family : families()) family(ops);
    for (uint32_t i = 0; i < ops.size(); ++i) {
      add(ops[i].name, i, false);
      for (const std::string_view s : ops[i].spellings)
        add(s, i, s.find("::") != std::string_view::npos);
    }
  }

  // `.out` spellings leave dtype, layout, device and pin_memory out.
  void add(std::string_view spelling, uint32_t i, bool without_factory) {
    if (spelling.empty()) return;
    auto entry = std::make_unique<Entry>();
    for (size_t a = 0; a < ops[i].args.size(); ++a) {
      if (without_factory && ops[i].args[a].kind == ArgKind::kFactory) {
        entry->factory.push_back(static_cast<uint8_t>(a));
      }
      if (ops[i].args[a].mutated) entry->info.mutated |= uint64_t{1} << a;
      if (ops[i].args[a].cache) entry->info.cache |= uint64_t{1} << a;
      const bool host = ops[i].op_class == OpClass::kScalar || ops[i].op_class == OpClass::kItem;
      if (host || ops[i].args[a].index) entry->info.index |= uint64_t{1} << a;
    }
    entry->info.name = ops[i].name;
    entry->info.op = i;
    entry->info.factory = entry->factory;
    PTERYX_DCHECK(!entries.contains(spelling));  // two operators claim one spelling
    entries.emplace(spelling, std::move(entry));
  }

  const graph::OpInfo* find(std::string_view spelling) const override {
    const auto it = entries.find(spelling);
    return it == entries.end() ? nullptr : &it->second->info;
  }

  struct Entry {
    graph::OpInfo info;
    std::vector<uint8_t> factory;
  };
  std::vector<OpDef> ops;
  std::unordered_map<std::string_view, std::unique_ptr<Entry>> entries;
};

const Table& table() {
  static const Table t;
  return t;
}

}  // namespace

std::span<const OpDef> all_ops() { return table().ops; }
const OpDef& op(const graph::OpInfo& info) { return table().ops[info.op]; }
const graph::OpLookup& lookup() { return table(); }

}  // namespace pteryx::ops

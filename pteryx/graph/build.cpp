// Builds the one graph of a method. Inlining keeps the order of the program; nothing is fused or
// moved here.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/build.h"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pteryx/graph/build/addresses.h"
#include "pteryx/graph/build/delegates.h"
#include "pteryx/graph/build/emitter.h"
#include "pteryx/graph/build/order.h"
#include "pteryx/graph/build/values.h"

namespace pteryx::graph {
namespace {

using program::MethodRecord;
using program::TensorRecord;

constexpr std::string_view kCopyIndex = "executorch_prim::et_copy_index.tensor";

class Builder {
 public:
  Builder(const program::Program& program, const MethodRecord& method, const Sharing& sharing,
          const OpLookup& ops)
      : method_(method),
        out_(ops),
        addresses_(method, sharing, out_),
        delegates_(program, method, out_, addresses_) {}

  Result<Graph> build() && {
    Graph& g = out_.graph();
    g.method = method_.name;
    PTERYX_TRY(delegates_.parse());
    add_method_values(method_, delegates_.blobs(), out_);
    null_ = out_.add(Null{}, "None");
    for (const uint32_t i : method_.inputs) g.inputs.push_back(ValueId{i});
    addresses_.place_initial();
    PTERYX_TRY(add_instructions());
    addresses_.write_back_state();
    for (const uint32_t i : method_.outputs) {
      PTERYX_TRY(addresses_.before_read(i));
      g.outputs.push_back(ValueId{i});
    }
    PTERYX_TRY(check_order(g));
    number_scalars(g);
    return std::move(g);
  }

 private:
  Status add_instructions() {
    std::vector<uint32_t> first_node;  // of each instruction
    for (size_t p = 0; p < method_.instructions.size(); ++p) {
      first_node.push_back(static_cast<uint32_t>(out_.graph().nodes.size()));
      out_.at(-1, static_cast<uint32_t>(p));
      const program::Instruction& instruction = method_.instructions[p];
      if (const auto* k = std::get_if<program::KernelCall>(&instruction)) {
        PTERYX_TRY(add_kernel(*k));
      } else if (const auto* d = std::get_if<program::DelegateCall>(&instruction)) {
        PTERYX_TRY(delegates_.inline_call(*d));
      } else if (const auto* m = std::get_if<program::MoveCall>(&instruction)) {
        PTERYX_TRY(add_move(*m));
      } else if (const auto* j = std::get_if<program::JumpFalseCall>(&instruction)) {
        PTERYX_TRY(add_jump(*j));
      }  // FreeCall: memory is planned here, nothing to do
    }
    first_node.push_back(static_cast<uint32_t>(out_.graph().nodes.size()));
    for (Node& n : out_.graph().nodes) {
      if (n.kind == Node::Kind::kJumpFalse) n.target = first_node[n.target];
    }
    return {};
  }

  bool is_tensor(uint32_t i) const {
    return std::holds_alternative<TensorRecord>(method_.values[i]);
  }

  // `.out` kernels repeat their result behind the arguments; drop the copies so that the result is
  // last, once.
  std::vector<uint32_t> without_repeated_results(const std::vector<uint32_t>& args) const {
    std::vector<uint32_t> out = args;
    if (args.size() < 2) return out;
    const uint32_t before = args[args.size() - 2];
    const auto* list = std::get_if<program::TensorListRecord>(&method_.values[args.back()]);
    if (list == nullptr) {
      if (is_tensor(args.back()) && args.back() == before) out.pop_back();
      return out;
    }
    const auto* twin = std::get_if<program::TensorListRecord>(&method_.values[before]);
    if (twin != nullptr && twin->items == list->items) {
      out.pop_back();
      return out;
    }
    const size_t count = list->items.size();
    bool repeated = count > 0 && args.size() > count;
    for (size_t i = 0; repeated && i < count; ++i) {
      repeated = list->items[i] == args[args.size() - 1 - count + i];
    }
    if (repeated) out.erase(out.end() - 1 - static_cast<ptrdiff_t>(count), out.end() - 1);
    return out;
  }

  Status before_read_any(uint32_t i) {
    if (const auto* list = std::get_if<program::TensorListRecord>(&method_.values[i])) {
      for (const auto& item : list->items) {
        if (item) PTERYX_TRY(addresses_.before_read(*item));
      }
      return {};
    }
    return addresses_.before_read(i);
  }

  Status add_kernel(const program::KernelCall& call) {
    const std::string& spelling = method_.operators[call.op];
    if (call.args.empty()) {
      return invalid_program(
          fmt::format("{} (instruction {}) has no arguments", spelling, out_.call()));
    }
    std::vector<uint32_t> args = without_repeated_results(call.args);
    if (spelling == kCopyIndex)
      args.push_back(args[0]);  // its result is its first argument, and is not repeated
    const OpInfo* info = out_.ops().find(spelling);
    for (size_t a = 0; a + 1 < args.size(); ++a) {
      if (args[a] != args.back()) PTERYX_TRY(before_read_any(args[a]));
    }
    std::vector<ValueId> ids;
    for (const uint32_t a : args) {
      while (info != nullptr && is_factory(*info, ids.size())) ids.push_back(null_);
      ids.push_back(ValueId{a});
    }
    out_.emit(spelling, std::move(ids));
    const uint32_t result = args.back();
    if (const auto* list = std::get_if<program::TensorListRecord>(&method_.values[result])) {
      for (const auto& item : list->items) {
        if (item) addresses_.after_write(*item);
      }
    } else {
      addresses_.after_write(result);
    }
    return {};
  }

  static bool is_factory(const OpInfo& info, size_t position) {
    for (const uint8_t f : info.factory) {
      if (f == position) return true;
    }
    return false;
  }

  Status add_move(const program::MoveCall& m) {
    if (is_tensor(m.from) != is_tensor(m.to)) {
      return invalid_program(fmt::format("instruction {}: move between {} and {}", out_.call(),
                                         kind_name(out_.graph().values[m.from]),
                                         kind_name(out_.graph().values[m.to])));
    }
    PTERYX_TRY(addresses_.before_read(m.from));
    out_.emit(is_tensor(m.from) ? kCopyOp : kScalarMoveOp, {ValueId{m.from}, ValueId{m.to}});
    addresses_.after_write(m.to);
    return {};
  }

  Status add_jump(const program::JumpFalseCall& j) {
    ValueId condition{j.condition};
    if (is_tensor(j.condition)) {
      PTERYX_TRY(addresses_.before_read(j.condition));
      condition = out_.add(LiveScalar{ScalarKind::kBool},
                           fmt::format("condition of instruction {}", out_.call()));
      out_.emit(kItemOp, {ValueId{j.condition}, condition});
    } else if (!std::holds_alternative<bool>(method_.values[j.condition])) {
      return invalid_program(
          fmt::format("instruction {}: condition (value {}) is {}, expected a bool", out_.call(),
                      j.condition, kind_name(out_.graph().values[j.condition])));
    }
    out_.emit_jump(condition, j.destination);
    return {};
  }

  const MethodRecord& method_;
  Emitter out_;
  Addresses addresses_;
  Delegates delegates_;
  ValueId null_ = kNoValue;
};

// Memory 1 is a method's own. The exporter gives buffers that methods share a memory behind it, as
// large in each of them, where each buffer has one place for all.
std::set<uint32_t> shared_memories(std::span<const MethodRecord* const> methods) {
  constexpr uint32_t kFirst = 2;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> count;  // of a memory of a size
  std::set<uint32_t> shared;
  for (const MethodRecord* m : methods) {
    for (uint32_t i = kFirst; i < m->buffer_sizes.size(); ++i) {
      if (m->buffer_sizes[i] > 0 && ++count[{i, m->buffer_sizes[i]}] > 1) shared.insert(i);
    }
  }
  return shared;
}

void add_shared_states(const Graph& g, std::set<SharedPlace>& to) {
  for (const Value& v : g.values) {
    if (const auto* t = std::get_if<Tensor>(&v); t != nullptr && t->shared) to.insert(*t->shared);
  }
}

}  // namespace

Result<Graph> build_graph(const program::Program& program, const program::MethodRecord& method,
                          const OpLookup& ops) {
  return Builder(program, method, {}, ops).build();
}

std::vector<Result<Graph>> build_graphs(const program::Program& program,
                                        std::span<const MethodRecord* const> methods,
                                        const OpLookup& ops) {
  Sharing sharing{.memories = shared_memories(methods), .states = {}};
  std::vector<Result<Graph>> graphs;
  for (const MethodRecord* m : methods) {
    graphs.push_back(Builder(program, *m, sharing, ops).build());
    if (graphs.back().ok()) add_shared_states(*graphs.back(), sharing.states);
  }
  // What a method writes only is seen to be state by those that read it: once more, knowing them.
  for (size_t i = 0; i < graphs.size() && !sharing.states.empty(); ++i) {
    if (graphs[i].ok()) graphs[i] = Builder(program, *methods[i], sharing, ops).build();
  }
  return graphs;
}

}  // namespace pteryx::graph

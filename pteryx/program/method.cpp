// Inputs, outputs, instructions, operators, delegates and planned buffers of a method. Values are
// in values.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/method.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/program/program_generated.h"
#include "pteryx/program/values.h"

namespace pteryx::program {
namespace {

Result<std::vector<uint64_t>> read_buffer_sizes(const pte::ExecutionPlan& plan, Budget& budget) {
  PTERYX_ASSIGN(std::vector<uint64_t> sizes,
                copy_list<uint64_t>(plan.non_const_buffer_sizes(), budget));
  if (!sizes.empty()) sizes[0] = 0;
  int64_t total = 0;
  for (size_t i = 1; i < sizes.size(); ++i) {
    if (!fits<int64_t>(sizes[i])) {
      return invalid_program(
          fmt::format("planned buffer {} has size {}", i, static_cast<int64_t>(sizes[i])));
    }
    const auto sum = checked_add(total, static_cast<int64_t>(sizes[i]));
    if (!sum) {
      return invalid_program(fmt::format("method {} asks for more than {} bytes of working memory",
                                         quote(view(plan.name())), total));
    }
    total = *sum;
  }
  for (uint32_t i = 0; i < count(plan.non_const_buffer_device()); ++i) {
    const pte::NonConstBufferDevice& entry = *plan.non_const_buffer_device()->Get(i);
    if (entry.device_type() != pte::DeviceType::CPU) {
      return unsupported(fmt::format("planned buffer {} is on {}", entry.buffer_idx(),
                                     device_name(entry.device_type())));
    }
  }
  return sizes;
}

// Indices of a method's inputs or outputs.
Result<std::vector<uint32_t>> read_ends(const char* what, const flatbuffers::Vector<int32_t>& list,
                                        const MethodRecord& m, Budget& budget) {
  PTERYX_TRY(check_indices(what, list, m.values.size()));
  PTERYX_ASSIGN(std::vector<uint32_t> ends, copy_list<uint32_t>(&list, budget));
  for (size_t i = 0; i < ends.size(); ++i) {
    const ValueRecord& v = m.values[ends[i]];
    if (is_list(v)) {
      return invalid_program(fmt::format("{} {} of {} (value {}) has unsupported kind: {}", what, i,
                                         quote(m.name), ends[i], kind_name(v)));
    }
  }
  return ends;
}

Result<std::vector<std::string>> read_operators(const pte::ExecutionPlan& plan, Budget& budget) {
  const uint32_t n = count(plan.operators());
  PTERYX_TRY(budget.take(n, sizeof(std::string)));
  std::vector<std::string> operators;
  operators.reserve(n);
  for (uint32_t i = 0; i < n; ++i) {
    const pte::Operator& op = *plan.operators()->Get(i);
    if (count(op.name()) == 0) return invalid_program(fmt::format("operator {} has no name", i));
    PTERYX_ASSIGN(std::string name, copy_name(op.name(), budget));
    if (count(op.overload()) != 0) {
      PTERYX_ASSIGN(const std::string overload, copy_name(op.overload(), budget));
      name += '.';
      name += overload;
    }
    operators.push_back(std::move(name));
  }
  return operators;
}

Result<ByteRange> find_delegate_blob(const pte::BackendDelegate& delegate,
                                     const Container& container) {
  const pte::BackendDelegateDataReference& where = *delegate.processed();
  const uint32_t index = where.index();
  switch (where.location()) {
    case pte::DataLocation::INLINE: {
      const auto* const blobs = container.root->backend_delegate_data();
      if (index >= count(blobs)) {
        return invalid_program(fmt::format("inline data {} of {}", index, count(blobs)));
      }
      const auto* const data = blobs->Get(index)->data();
      if (data == nullptr) return invalid_program(fmt::format("inline data {} is empty", index));
      return container.range_of(bytes_of_list(*data));
    }
    case pte::DataLocation::SEGMENT:
      if (index >= container.segments.size()) {
        return invalid_program(fmt::format("segment {} of {}", index, container.segments.size()));
      }
      return container.segments[index];
  }
  return invalid_program(
      fmt::format("unknown data location {}", static_cast<int>(where.location())));
}

Result<DelegateRecord> read_delegate(const pte::BackendDelegate& delegate,
                                     const Container& container, Budget& budget) {
  if (count(delegate.id()) == 0) return invalid_program("no backend name");
  if (delegate.processed() == nullptr) return invalid_program("no data");
  DelegateRecord record;
  PTERYX_ASSIGN(record.id, copy_name(delegate.id(), budget));
  PTERYX_ASSIGN(record.blob, find_delegate_blob(delegate, container));
  const uint32_t n = count(delegate.compile_specs());
  PTERYX_TRY(budget.take(n, sizeof(CompileSpec)));
  record.specs.reserve(n);
  for (uint32_t i = 0; i < n; ++i) {
    const pte::CompileSpec& spec = *delegate.compile_specs()->Get(i);
    if (spec.key() == nullptr || spec.value() == nullptr) {
      return invalid_program(fmt::format("compile spec {} malformed", i));
    }
    PTERYX_ASSIGN(std::string key, copy_text(spec.key(), budget));
    record.specs.push_back({.key = std::move(key), .value = bytes_of_list(*spec.value())});
  }
  return record;
}

Result<std::vector<DelegateRecord>> read_delegates(const pte::ExecutionPlan& plan,
                                                   const Container& container, Budget& budget) {
  const auto& list = *plan.delegates();
  PTERYX_TRY(budget.take(list.size(), sizeof(DelegateRecord)));
  std::vector<DelegateRecord> delegates;
  delegates.reserve(list.size());
  for (uint32_t d = 0; d < list.size(); ++d) {
    auto delegate = read_delegate(*list.Get(d), container, budget);
    if (!delegate.ok()) return at(fmt::format("delegate {}", d), delegate.status());
    delegates.push_back(std::move(delegate).value());
  }
  return delegates;
}

// Reads the instructions of one chain, whose jumps count from its own first instruction.
class ChainReader {
 public:
  ChainReader(MethodRecord& method, size_t chain_size, Budget& budget)
      : m_(method), first_(method.instructions.size()), size_(chain_size), budget_(budget) {}

  Result<Instruction> read(const pte::Instruction& from) {
    if (from.instr_args() != nullptr) {
      switch (from.instr_args_type()) {
        case pte::InstructionArguments::KernelCall: return kernel(*from.instr_args_as_KernelCall());
        case pte::InstructionArguments::DelegateCall:
          return delegate(*from.instr_args_as_DelegateCall());
        case pte::InstructionArguments::MoveCall: return move(*from.instr_args_as_MoveCall());
        case pte::InstructionArguments::JumpFalseCall:
          return jump(*from.instr_args_as_JumpFalseCall());
        case pte::InstructionArguments::FreeCall: return free(*from.instr_args_as_FreeCall());
        case pte::InstructionArguments::NONE: break;
      }
    }
    return invalid_program(
        fmt::format("unknown or empty (kind {})", static_cast<int>(from.instr_args_type())));
  }

 private:
  Status check_value(const char* what, int64_t index) const {
    if (index < 0 || static_cast<uint64_t>(index) >= m_.values.size()) {
      return invalid_program(
          fmt::format("{} refers to value {} of {}", what, index, m_.values.size()));
    }
    return {};
  }

  Result<std::vector<uint32_t>> args(const flatbuffers::Vector<int32_t>* list) {
    if (list == nullptr) return invalid_program("no arguments");
    PTERYX_TRY(check_indices("argument", *list, m_.values.size()));
    return copy_list<uint32_t>(list, budget_);
  }

  Result<Instruction> kernel(const pte::KernelCall& call) {
    if (call.op_index() < 0 || static_cast<size_t>(call.op_index()) >= m_.operators.size()) {
      return invalid_program(
          fmt::format("operator {} of {}", call.op_index(), m_.operators.size()));
    }
    KernelCall record = {.op = static_cast<uint32_t>(call.op_index()), .args = {}};
    PTERYX_ASSIGN(record.args, args(call.args()));
    return Instruction(std::move(record));
  }

  Result<Instruction> delegate(const pte::DelegateCall& call) {
    if (call.delegate_index() < 0 ||
        static_cast<size_t>(call.delegate_index()) >= m_.delegates.size()) {
      return invalid_program(
          fmt::format("delegate {} of {}", call.delegate_index(), m_.delegates.size()));
    }
    DelegateCall record = {.delegate = static_cast<uint32_t>(call.delegate_index()), .args = {}};
    PTERYX_ASSIGN(record.args, args(call.args()));
    return Instruction(std::move(record));
  }

  Result<Instruction> move(const pte::MoveCall& call) {
    PTERYX_TRY(check_value("source", call.move_from()));
    PTERYX_TRY(check_value("destination", call.move_to()));
    return Instruction(MoveCall{.from = static_cast<uint32_t>(call.move_from()),
                                .to = static_cast<uint32_t>(call.move_to())});
  }

  Result<Instruction> jump(const pte::JumpFalseCall& call) {
    PTERYX_TRY(check_value("condition", call.cond_value_index()));
    const auto condition = static_cast<uint32_t>(call.cond_value_index());
    const ValueRecord& v = m_.values[condition];
    const auto* const tensor = std::get_if<TensorRecord>(&v);
    if (!std::holds_alternative<bool>(v) && (tensor == nullptr || tensor->dtype != DType::kBool)) {
      return invalid_program(
          fmt::format("condition is not boolean: value {} is {}", condition, kind_name(v)));
    }
    const int64_t destination = call.destination_instruction();
    if (destination < 0 || static_cast<uint64_t>(destination) > size_) {
      return invalid_program(fmt::format("jump to {} of {}", destination, size_));
    }
    return Instruction(JumpFalseCall{
        .condition = condition,
        .destination = static_cast<uint32_t>(first_ + static_cast<size_t>(destination))});
  }

  Result<Instruction> free(const pte::FreeCall& call) {
    PTERYX_TRY(check_value("freed", call.value_index()));
    return Instruction(FreeCall{.value = static_cast<uint32_t>(call.value_index())});
  }

  MethodRecord& m_;
  size_t first_;
  size_t size_;
  Budget& budget_;
};

Status read_instructions(const pte::ExecutionPlan& plan, MethodRecord& m, Budget& budget) {
  for (uint32_t c = 0; c < plan.chains()->size(); ++c) {
    const auto* const list = plan.chains()->Get(c)->instructions();
    const uint32_t n = count(list);
    PTERYX_TRY(budget.take(n, sizeof(Instruction)));
    ChainReader reader(m, n, budget);
    if (plan.chains()->size() == 1) m.instructions.reserve(n);
    for (uint32_t i = 0; i < n; ++i) {
      auto instruction = reader.read(*list->Get(i));
      if (!instruction.ok()) {
        return at(fmt::format("instruction {}", m.instructions.size()), instruction.status());
      }
      m.instructions.push_back(std::move(instruction).value());
    }
  }
  return {};
}

}  // namespace

Result<MethodRecord> read_method(const pte::ExecutionPlan& plan, const MethodSources& sources,
                                 Budget& budget) {
  MethodRecord m;
  PTERYX_ASSIGN(m.name, copy_name(plan.name(), budget));
  PTERYX_ASSIGN(m.buffer_sizes, read_buffer_sizes(plan, budget));
  PTERYX_ASSIGN(m.values, read_values(plan, m.buffer_sizes, sources, budget));
  PTERYX_ASSIGN(m.inputs, read_ends("input", *plan.inputs(), m, budget));
  PTERYX_ASSIGN(m.outputs, read_ends("output", *plan.outputs(), m, budget));
  PTERYX_ASSIGN(m.operators, read_operators(plan, budget));
  PTERYX_ASSIGN(m.delegates, read_delegates(plan, sources.container, budget));
  PTERYX_TRY(read_instructions(plan, m, budget));
  return m;
}

}  // namespace pteryx::program

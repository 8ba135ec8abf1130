// SPDX-License-Identifier: BSD-3-Clause
#include "fields.h"

#include <cstdint>
#include <cstring>
#include <string_view>

#include "pteryx/program/program_generated.h"
#include "pteryx/program/vk_graph_generated.h"

namespace pteryx::fuzz {
namespace {

class Finder {
 public:
  explicit Finder(const std::string& file) : file_(file) {}

  Fields find() && {
    flatbuffers::Verifier verifier(bytes(0), file_.size());
    if (pte::VerifyProgramBuffer(verifier)) program(*pte::GetProgram(file_.data()));
    for (size_t at = file_.find("VH00"); at != std::string::npos; at = file_.find("VH00", at + 4))
      delegate(at);
    return std::move(fields_);
  }

 private:
  const uint8_t* bytes(size_t at) const {
    return reinterpret_cast<const uint8_t*>(file_.data()) + at;
  }

  // A field of a table, if the table has it; T is the field's type.
  template <typename T, typename Table>
  void field(const Table& table, flatbuffers::voffset_t id) {
    const auto* const at = reinterpret_cast<const flatbuffers::Table&>(table).GetAddressOf(id);
    if (at != nullptr) fields_.numbers.push_back({static_cast<size_t>(at - bytes(0)), sizeof(T)});
  }
  template <typename T>
  void items(const flatbuffers::Vector<T>* list, std::vector<Fields::Place>& places) {
    if (list == nullptr) return;
    const auto start = static_cast<size_t>(list->Data() - bytes(0));
    for (size_t i = 0; i < list->size(); ++i) places.push_back({start + i * sizeof(T), sizeof(T)});
  }
  template <typename T>
  void items(const flatbuffers::Vector<T>* list) {
    items(list, fields_.numbers);
  }
  void name(const flatbuffers::String* text) {
    if (text == nullptr || text->size() == 0) return;
    fields_.names.push_back({static_cast<size_t>(text->Data() - bytes(0)), text->size()});
  }
  template <typename List, typename Visit>
  static void each(const List* list, Visit&& visit) {
    if (list == nullptr) return;
    for (const auto* item : *list) {
      if (item != nullptr) visit(*item);
    }
  }

  void program(const pte::Program& p) {
    each(p.execution_plan(), [&](const pte::ExecutionPlan& plan) {
      each(plan.values(), [&](const pte::EValue& v) { value(v); });
      items(plan.inputs());
      items(plan.outputs());
      items(plan.non_const_buffer_sizes(), fields_.planned);
      each(plan.operators(), [&](const pte::Operator& o) { name(o.name()); });
      each(plan.chains(), [&](const pte::Chain& c) {
        each(c.instructions(), [&](const pte::Instruction& i) { instruction(i); });
      });
    });
  }

  void value(const pte::EValue& v) {
    if (const auto* i = v.val_as_Int()) field<int64_t>(*i, pte::Int::VT_INT_VAL);
    if (const auto* b = v.val_as_Bool()) field<bool>(*b, pte::Bool::VT_BOOL_VAL);
    if (const auto* d = v.val_as_Double()) field<double>(*d, pte::Double::VT_DOUBLE_VAL);
    if (const auto* l = v.val_as_IntList()) items(l->items());
    if (const auto* l = v.val_as_DoubleList()) items(l->items());
    if (const auto* l = v.val_as_BoolList()) items(l->items());
    if (const auto* l = v.val_as_TensorList()) items(l->items());
    if (const auto* l = v.val_as_OptionalTensorList()) items(l->items());
    if (const auto* t = v.val_as_Tensor()) {
      field<int8_t>(*t, pte::Tensor::VT_SCALAR_TYPE);
      field<int8_t>(*t, pte::Tensor::VT_SHAPE_DYNAMISM);
      items(t->sizes(), fields_.sizes);
    }
  }

  void instruction(const pte::Instruction& i) {
    if (const auto* k = i.instr_args_as_KernelCall()) {
      field<int32_t>(*k, pte::KernelCall::VT_OP_INDEX);
      items(k->args());
    }
    if (const auto* d = i.instr_args_as_DelegateCall()) {
      field<int32_t>(*d, pte::DelegateCall::VT_DELEGATE_INDEX);
      items(d->args());
    }
    if (const auto* m = i.instr_args_as_MoveCall()) {
      field<int32_t>(*m, pte::MoveCall::VT_MOVE_FROM);
      field<int32_t>(*m, pte::MoveCall::VT_MOVE_TO);
    }
    if (const auto* j = i.instr_args_as_JumpFalseCall()) {
      field<int32_t>(*j, pte::JumpFalseCall::VT_COND_VALUE_INDEX);
      field<int32_t>(*j, pte::JumpFalseCall::VT_DESTINATION_INSTRUCTION);
    }
  }

  // The magic stands 4 bytes into the header; the FlatBuffer's offset and size, 10 and 14.
  void delegate(size_t magic) {
    if (magic < 4 || magic + 14 > file_.size()) return;
    uint32_t offset = 0;
    uint32_t size = 0;
    std::memcpy(&offset, bytes(magic + 6), sizeof(offset));
    std::memcpy(&size, bytes(magic + 10), sizeof(size));
    const size_t start = magic - 4 + offset;
    if (start > file_.size() || size > file_.size() - start) return;
    flatbuffers::Verifier verifier(bytes(start), size);
    if (vk::VerifyVkGraphBuffer(verifier)) graph(*vk::GetVkGraph(bytes(start)));
  }

  void graph(const vk::VkGraph& g) {
    items(g.input_ids());
    items(g.output_ids());
    each(g.chain(), [&](const vk::OperatorCall& c) {
      name(c.name());
      items(c.args());
    });
    each(g.values(), [&](const vk::VkValue& v) { value(v); });
  }

  void value(const vk::VkValue& v) {
    if (const auto* i = v.value_as_Int()) field<int64_t>(*i, vk::Int::VT_INT_VAL);
    if (const auto* d = v.value_as_Double()) field<double>(*d, vk::Double::VT_DOUBLE_VAL);
    if (const auto* b = v.value_as_Bool()) field<bool>(*b, vk::Bool::VT_BOOL_VAL);
    if (const auto* l = v.value_as_IntList()) items(l->items());
    if (const auto* l = v.value_as_DoubleList()) items(l->items());
    if (const auto* l = v.value_as_BoolList()) items(l->items());
    if (const auto* l = v.value_as_ValueList()) items(l->items());
    if (const auto* t = v.value_as_VkTensor()) {
      field<int8_t>(*t, vk::VkTensor::VT_DATATYPE);
      items(t->dims(), fields_.sizes);
    }
  }

  const std::string& file_;
  Fields fields_;
};

}  // namespace

Fields find_fields(const std::string& file) { return Finder(file).find(); }

}  // namespace pteryx::fuzz

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/vk_graph.h"

#include <algorithm>
#include <cstring>

#include "pteryx/base/checked.h"
#include "pteryx/program/vk_graph_generated.h"

namespace pteryx::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr uint64_t kNamed = ~uint64_t{0};  // offset of a constant that is a named blob

vk::VkDataType data_type(DType t) {
  switch (t) {
    case DType::kU8: return vk::VkDataType::UINT8;
    case DType::kI8: return vk::VkDataType::INT8;
    case DType::kI32: return vk::VkDataType::INT32;
    case DType::kF16: return vk::VkDataType::FLOAT16;
    default: return vk::VkDataType::FLOAT32;
  }
}

uint64_t bytes_of(DType type, const Dims& dims) {
  return static_cast<uint64_t>(numel(dims)) * size_bytes(type);
}

template <typename T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof(T));
}

// Header, FlatBuffer, both padded to 16.
std::string with_header(const FlatBufferBuilder& fbb) {
  constexpr uint32_t kHeaderBytes = 30;
  constexpr uint32_t kPadded = 32;
  const uint32_t size = fbb.GetSize();
  std::string out(4, '\0');
  out += "VH00";
  put(out, static_cast<uint16_t>(kHeaderBytes));
  put(out, kPadded);
  put(out, size);
  put(out, static_cast<uint32_t>(kPadded + align_up(size, 16)));
  put(out, uint64_t{0});
  out.resize(kPadded);
  out.append(reinterpret_cast<const char*>(fbb.GetBufferPointer()), size);
  out.resize(align_up(out.size(), 16));
  return out;
}

}  // namespace

ValueId VkGraph::tensor(DType type, const Dims& dims) { return add(Tensor{type, dims}); }

ValueId VkGraph::constant(size_t blob, DType type, const Dims& dims) {
  constants_.push_back(blob);
  return add(Tensor{type, dims, static_cast<int32_t>(constants_.size() - 1), false});
}

ValueId VkGraph::prepack(size_t blob, DType type, const Dims& dims) {
  const ValueId source = constant(blob, type, dims);
  const ValueId y = add(Tensor{type, dims, -1, false});
  call("et_vk.prepack.default", {source, y});
  return y;
}

ValueId VkGraph::integer(int64_t v) {
  const auto at = integers_.find(v);
  return at != integers_.end() ? at->second : integers_[v] = add(v);
}
ValueId VkGraph::number(double v) {
  const auto at = numbers_.find(v);
  return at != numbers_.end() ? at->second : numbers_[v] = add(v);
}
ValueId VkGraph::flag(bool v) {
  const auto at = flags_.find(v);
  return at != flags_.end() ? at->second : flags_[v] = add(v);
}

void VkGraph::call(std::string name, std::vector<ValueId> args) {
  calls_.push_back({std::move(name), std::move(args)});
}

std::vector<ValueId> VkGraph::tensors_of(ValueId id) const {
  const Value& v = values_[static_cast<size_t>(id)];
  if (std::holds_alternative<Tensor>(v)) return {id};
  std::vector<ValueId> out;
  if (const auto* list = std::get_if<List>(&v)) {
    for (const ValueId item : list->ids) {
      if (std::holds_alternative<Tensor>(values_[static_cast<size_t>(item)])) out.push_back(item);
    }
  }
  return out;
}

// Objects are taken when a tensor is first written and given back after its last use, so the result
// of a call never shares one with its inputs.
std::vector<int32_t> VkGraph::plan_memory() const {
  std::vector<size_t> last(values_.size(), 0);
  for (size_t c = 0; c < calls_.size(); ++c) {
    for (const ValueId arg : calls_[c].args) {
      for (const ValueId t : tensors_of(arg)) last[static_cast<size_t>(t)] = c;
    }
  }
  for (const uint32_t id : outputs_) last[id] = calls_.size();

  std::vector<int32_t> object(values_.size(), -1);
  std::vector<std::pair<uint64_t, int32_t>> free;  // sizes and objects
  int32_t objects = 0;
  const auto take = [&](ValueId id) {
    const auto i = static_cast<size_t>(id);
    const auto* t = std::get_if<Tensor>(&values_[i]);
    if (t == nullptr || !t->shared || object[i] >= 0) return;
    const uint64_t need = bytes_of(t->type, t->dims);
    const auto best = std::min_element(free.begin(), free.end(), [&](const auto& a, const auto& b) {
      const auto far = [&](uint64_t size) { return size > need ? size - need : need - size; };
      return far(a.first) < far(b.first);
    });
    if (best == free.end()) {
      object[i] = objects++;
      return;
    }
    object[i] = best->second;
    free.erase(best);
  };
  for (const uint32_t id : inputs_) take(static_cast<ValueId>(id));
  for (size_t c = 0; c < calls_.size(); ++c) {
    std::vector<ValueId> used;
    for (const ValueId arg : calls_[c].args) {
      for (const ValueId t : tensors_of(arg)) used.push_back(t);
    }
    for (const ValueId t : used) take(t);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (const ValueId t : used) {
      const auto i = static_cast<size_t>(t);
      const auto& tensor = *std::get_if<Tensor>(&values_[i]);
      if (object[i] >= 0 && last[i] == c) {
        free.emplace_back(bytes_of(tensor.type, tensor.dims), object[i]);
      }
    }
  }
  return object;
}

std::string VkGraph::serialize(std::span<const std::string> keys) const {
  FlatBufferBuilder fbb(1 << 16);
  const std::vector<int32_t> objects = plan_memory();
  std::vector<Offset<vk::VkBytes>> constants(constants_.size());
  std::vector<Offset<vk::VkValue>> values;
  const auto push = [&](vk::GraphTypes kind, Offset<void> content) {
    values.push_back(vk::CreateVkValue(fbb, kind, content));
  };
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& v = values_[i];
    if (const auto* t = std::get_if<Tensor>(&v)) {
      const std::vector<uint32_t> dims(t->dims.begin(), t->dims.end());
      const vk::VkDataType type = data_type(t->type);
      push(vk::GraphTypes::VkTensor,
           vk::CreateVkTensorDirect(fbb, type, &dims, t->constant, objects[i],
                                    vk::VkStorageType::DEFAULT_STORAGE,
                                    vk::VkMemoryLayout::DEFAULT_LAYOUT, type)
               .Union());
      if (t->constant < 0) continue;
      const auto c = static_cast<size_t>(t->constant);
      constants[c] = vk::CreateVkBytesDirect(fbb, kNamed, bytes_of(t->type, t->dims),
                                             keys[constants_[c]].c_str());
    } else if (const auto* list = std::get_if<List>(&v)) {
      push(vk::GraphTypes::ValueList, vk::CreateValueListDirect(fbb, &list->ids).Union());
    } else if (const auto* ints = std::get_if<Integers>(&v)) {
      push(vk::GraphTypes::IntList, vk::CreateIntListDirect(fbb, &ints->items).Union());
    } else if (const auto* n = std::get_if<int64_t>(&v)) {
      push(vk::GraphTypes::Int, vk::CreateInt(fbb, *n).Union());
    } else if (const auto* d = std::get_if<double>(&v)) {
      push(vk::GraphTypes::Double, vk::CreateDouble(fbb, *d).Union());
    } else if (const auto* b = std::get_if<bool>(&v)) {
      push(vk::GraphTypes::Bool, vk::CreateBool(fbb, *b).Union());
    } else if (std::holds_alternative<SymInt>(v)) {
      push(vk::GraphTypes::SymInt, vk::CreateSymInt(fbb).Union());
    } else {
      push(vk::GraphTypes::Null, vk::CreateNull(fbb).Union());
    }
  }
  std::vector<Offset<vk::OperatorCall>> chain;
  chain.reserve(calls_.size());
  for (const Call& c : calls_) {
    chain.push_back(vk::CreateOperatorCallDirect(fbb, static_cast<uint32_t>(chain.size()),
                                                 c.name.c_str(), &c.args));
  }
  const std::vector<Offset<vk::VkBytes>> shaders;
  vk::FinishVkGraphBuffer(fbb, vk::CreateVkGraphDirect(fbb, "0", &chain, &values, &inputs_,
                                                       &outputs_, &constants, &shaders));
  return with_header(fbb);
}

}  // namespace pteryx::convert

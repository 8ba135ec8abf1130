// The graph of a VulkanBackend delegate while it is made, and the blob that it becomes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "pteryx/base/dims.h"
#include "pteryx/base/dtype.h"

namespace pteryx::convert {

using ValueId = int32_t;

class VkGraph {
 public:
  ValueId tensor(DType type, const Dims& dims);
  // Blob `blob` of the program; several constants may be of one blob.
  ValueId constant(size_t blob, DType type, const Dims& dims);
  ValueId null() { return add(Null{}); }
  ValueId symint() { return add(SymInt{}); }
  ValueId list(std::vector<ValueId> ids) { return add(List{std::move(ids)}); }
  ValueId integers(std::vector<int64_t> items) { return add(Integers{std::move(items)}); }
  // Equal scalars are one value.
  ValueId integer(int64_t v);
  ValueId number(double v);
  ValueId flag(bool v);

  // Arguments in schema order, the result last.
  void call(std::string name, std::vector<ValueId> args);
  // The constant as an ordinary tensor, made once at load.
  ValueId prepack(size_t blob, DType type, const Dims& dims);

  void add_input(ValueId v) { inputs_.push_back(static_cast<uint32_t>(v)); }
  void add_output(ValueId v) { outputs_.push_back(static_cast<uint32_t>(v)); }

  // The blob, where `keys` names the blobs of the program. Its size depends only on the lengths of
  // the keys.
  std::string serialize(std::span<const std::string> keys) const;

 private:
  struct Null {};
  struct SymInt {};
  struct List {
    std::vector<ValueId> ids;
  };
  struct Integers {
    std::vector<int64_t> items;
  };
  struct Tensor {
    DType type;
    Dims dims;
    int32_t constant = -1;
    bool shared = true;  // may share memory with others
  };
  using Value = std::variant<Null, SymInt, List, Integers, Tensor, int64_t, double, bool>;
  struct Call {
    std::string name;
    std::vector<ValueId> args;
  };
  ValueId add(Value v) {
    values_.push_back(std::move(v));
    return static_cast<ValueId>(values_.size() - 1);
  }
  // The tensors that `id` is or lists.
  std::vector<ValueId> tensors_of(ValueId id) const;
  // A memory object for every value; -1: its own memory.
  std::vector<int32_t> plan_memory() const;

  std::vector<Value> values_;
  std::vector<Call> calls_;
  std::vector<size_t> constants_;  // their blobs
  std::vector<uint32_t> inputs_, outputs_;
  std::map<int64_t, ValueId> integers_;
  std::map<double, ValueId> numbers_;
  std::map<bool, ValueId> flags_;
};

}  // namespace pteryx::convert

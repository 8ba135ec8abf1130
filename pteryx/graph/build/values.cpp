// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/build/values.h"

#include <vector>

#include <fmt/format.h>

namespace pteryx::graph {
namespace {

using program::Blob;
using program::MethodRecord;
using program::TensorRecord;
using program::ValueRecord;

bool identity_order(std::span<const uint8_t> order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != i) return false;
  }
  return true;
}

// Which method values some instruction writes: their scalars are live.
std::vector<bool> find_written(const MethodRecord& method, std::span<const Blob> blobs) {
  std::vector<bool> written(method.values.size());
  for (const program::Instruction& instruction : method.instructions) {
    if (const auto* k = std::get_if<program::KernelCall>(&instruction);
        k != nullptr && !k->args.empty()) {
      written[k->args.back()] = true;
    } else if (const auto* d = std::get_if<program::DelegateCall>(&instruction)) {
      for (size_t i = blobs[d->delegate].inputs.size(); i < d->args.size(); ++i)
        written[d->args[i]] = true;
    } else if (const auto* m = std::get_if<program::MoveCall>(&instruction)) {
      written[m->to] = true;
    }
  }
  return written;
}

Tensor method_tensor(const TensorRecord& r) {
  Tensor t{.dtype = r.dtype,
           .max = r.sizes,
           .data = {},
           .dim_order = {},
           .dynamic = r.dynamic,
           .unsupported = r.unsupported};
  if (r.data) t.data.push_back(*r.data);
  if (r.data && !identity_order(r.dim_order)) t.dim_order = r.dim_order;
  return t;
}

// Boxed lists become literal ones where no item is ever written.
Value int_list(const program::IntListRecord& r, const MethodRecord& method,
               const std::vector<bool>& written) {
  IntList literal;
  ValueList boxed;
  bool live = false;
  for (const uint32_t item : r.items) {
    live = live || written[item];
    boxed.items.push_back(ValueId{item});
    const auto* v = std::get_if<int64_t>(&method.values[item]);
    literal.items.push_back(v == nullptr ? 0 : *v);
  }
  if (live) return boxed;
  return literal;
}

Value method_value(uint32_t i, const MethodRecord& method, const std::vector<bool>& written) {
  const bool live = written[i];
  const ValueRecord& record = method.values[i];
  if (const auto* v = std::get_if<int64_t>(&record)) {
    if (live) return LiveScalar{ScalarKind::kInt, *v, static_cast<double>(*v)};
    return *v;
  }
  if (const auto* v = std::get_if<bool>(&record)) {
    if (live) return LiveScalar{ScalarKind::kBool, *v ? 1 : 0, *v ? 1.0 : 0.0};
    return *v;
  }
  if (const auto* v = std::get_if<double>(&record)) {
    if (live) return LiveScalar{ScalarKind::kDouble, 0, *v};
    return *v;
  }
  if (const auto* v = std::get_if<std::string>(&record)) return *v;
  if (const auto* v = std::get_if<TensorRecord>(&record)) return method_tensor(*v);
  if (const auto* v = std::get_if<program::IntListRecord>(&record))
    return int_list(*v, method, written);
  if (const auto* v = std::get_if<program::DoubleListRecord>(&record)) return DoubleList{v->items};
  if (const auto* v = std::get_if<program::BoolListRecord>(&record)) return BoolList{v->items};
  if (const auto* v = std::get_if<program::TensorListRecord>(&record)) {
    ValueList list;
    for (const auto& item : v->items) {
      const bool none = !item || std::holds_alternative<program::NullRecord>(method.values[*item]);
      list.items.push_back(none ? kNoValue : ValueId{*item});
    }
    return list;
  }
  return Null{};
}

}  // namespace

void add_method_values(const MethodRecord& method, std::span<const Blob> blobs, Emitter& to) {
  const std::vector<bool> written = find_written(method, blobs);
  for (uint32_t i = 0; i < method.values.size(); ++i)
    to.add(method_value(i, method, written), fmt::format("value {}", i));
}

}  // namespace pteryx::graph

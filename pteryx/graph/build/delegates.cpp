// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/graph/build/delegates.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace pteryx::graph {
namespace {

using program::Blob;
using program::BlobCall;
using program::BlobTensor;
using program::BlobValue;
using program::BlobValueList;
using program::TensorRecord;

constexpr std::string_view kPrepack = "et_vk.prepack.default";
constexpr std::string_view kFull = "aten.full.default";

// Each call of a delegate is inlined. Exporters make one delegate for each call; a file that calls
// one again and again must not grow with the square of its size.
constexpr uint64_t kInliningFactor = 16;

// What inlining a blob adds to the graph: values, nodes, arguments and items of lists.
uint64_t inlined_size(const Blob& blob) {
  uint64_t n = blob.values.size();
  for (const BlobValue& v : blob.values) {
    std::visit(
        [&](const auto& content) {
          if constexpr (requires { content.items.size(); }) n += content.items.size();
        },
        v);
  }
  for (const BlobCall& call : blob.chain) n += 1 + call.args.size();
  return n;
}

Value blob_value(const BlobValue& v) {
  if (const auto* i = std::get_if<int64_t>(&v)) return *i;
  if (const auto* d = std::get_if<double>(&v)) return *d;
  if (const auto* b = std::get_if<bool>(&v)) return *b;
  if (const auto* s = std::get_if<std::string>(&v)) return *s;
  if (const auto* t = std::get_if<BlobTensor>(&v)) {
    Tensor tensor{.dtype = t->dtype,
                  .max = t->dims,
                  .data = {},
                  .dim_order = {},
                  .unsupported = t->unsupported};
    if (t->constant) tensor.data.push_back(*t->constant);
    return tensor;
  }
  if (std::holds_alternative<program::BlobSymInt>(v)) return LiveScalar{};
  if (const auto* l = std::get_if<program::BlobIntList>(&v)) return IntList{l->items};
  if (const auto* l = std::get_if<program::DoubleListRecord>(&v)) return DoubleList{l->items};
  if (const auto* l = std::get_if<program::BoolListRecord>(&v)) return BoolList{l->items};
  return Null{};
}

std::string blob_label(uint32_t delegate, uint32_t value) {
  return fmt::format("delegate {} value {}", delegate, value);
}

// Of a tensor that the blob and the program have in common, where both can have it.
Status expect_same_dims(uint32_t delegate, std::string_view what, size_t i, const BlobTensor& blob,
                        const TensorRecord& program) {
  if (!blob.unsupported.empty() || !program.unsupported.empty()) return {};
  if (blob.dims == program.sizes) return {};
  return invalid_program(fmt::format("{} {} of delegate {}: the delegate has {}, the program {}",
                                     what, i, delegate, to_string(blob.dims),
                                     to_string(program.sizes)));
}

}  // namespace

Status Delegates::parse() {
  for (size_t d = 0; d < method_.delegates.size(); ++d) {
    const program::DelegateRecord& record = method_.delegates[d];
    if (record.id != program::kVulkanDelegate) {
      return unsupported(
          fmt::format("delegate {} of '{}' is for the backend '{}', which Pteryx does not have", d,
                      method_.name, record.id));
    }
    auto blob = program::parse_blob(record, program_.named_data());
    if (!blob.ok()) {
      return std::move(blob).status().during(
          fmt::format("reading delegate {} of method '{}'", d, method_.name));
    }
    blobs_.push_back(std::move(blob).value());
  }
  uint64_t size = method_.values.size() + method_.instructions.size();
  for (const Blob& blob : blobs_) size += inlined_size(blob);
  inlining_left_ = 4096 + kInliningFactor * size;
  return {};
}

// Values that calls of the blob write in place.
std::vector<bool> Delegates::find_mutated(const Blob& blob) const {
  std::vector<bool> mutated(blob.values.size());
  for (const BlobCall& call : blob.chain) {
    const OpInfo* info = out_.ops().find(call.name);
    for (size_t a = 0; info != nullptr && a + 1 < call.args.size(); ++a) {
      if (info->mutates(a)) mutated[call.args[a]] = true;
    }
    for (size_t a = 0; a + 1 < call.args.size(); ++a) {
      if (call.args[a] == call.args.back())
        mutated[call.args[a]] = true;  // the result is an argument
    }
  }
  return mutated;
}

Status Delegates::inline_call(const program::DelegateCall& call) {
  const Blob& blob = blobs_[call.delegate];
  out_.at(static_cast<int32_t>(call.delegate), out_.call());
  if (call.args.size() != blob.inputs.size() + blob.outputs.size()) {
    return invalid_program(fmt::format(
        "instruction {}: delegate {} takes {} inputs and gives {} outputs, the call has {} "
        "arguments",
        out_.call(), call.delegate, blob.inputs.size(), blob.outputs.size(), call.args.size()));
  }
  const uint64_t size = inlined_size(blob);
  if (size > inlining_left_) {
    return invalid_program(
        fmt::format("instruction {}: delegate {} is called too often: its calls make the method "
                    "over {} times what the file holds",
                    out_.call(), call.delegate, kInliningFactor));
  }
  inlining_left_ -= size;
  Inlining in{blob, call, std::vector<ValueId>(blob.values.size(), kNoValue), find_mutated(blob)};
  for (size_t i = 0; i < blob.inputs.size(); ++i) PTERYX_TRY(bind_input(in, i));
  std::vector<bool> bound(blob.outputs.size());
  for (size_t i = 0; i < blob.outputs.size(); ++i) {
    PTERYX_ASSIGN(const bool direct, bind_output(in, i));
    bound[i] = direct;
  }
  PTERYX_TRY(add_blob_values(in));
  for (const BlobCall& c : blob.chain) {
    out_.at(static_cast<int32_t>(call.delegate), c.node_id);
    PTERYX_TRY(add_blob_call(in, c));
  }
  for (size_t i = 0; i < blob.outputs.size(); ++i) {
    const uint32_t target = call.args[blob.inputs.size() + i];
    if (!bound[i]) move_output(in.map[blob.outputs[i]], ValueId{target});
    addresses_.after_write(target);
  }
  return {};
}

Status Delegates::bind_input(Inlining& in, size_t i) {
  const uint32_t inner = in.blob.inputs[i];
  const uint32_t outer = in.call.args[i];
  if (in.map[inner] != kNoValue) {
    return invalid_program(fmt::format("delegate {}: input {} names value {} a second time",
                                       in.call.delegate, i, inner));
  }
  PTERYX_TRY(addresses_.before_read(outer));
  if (const auto* t = std::get_if<BlobTensor>(&in.blob.values[inner])) {
    const auto* record = std::get_if<TensorRecord>(&method_.values[outer]);
    if (record == nullptr) {
      return invalid_program(fmt::format("input {} of delegate {}: expected a tensor, got {}", i,
                                         in.call.delegate, kind_name(out_.graph().values[outer])));
    }
    PTERYX_TRY(expect_same_dims(in.call.delegate, "input", i, *t, *record));
    if (record->dtype == t->dtype && !in.mutated[inner]) {
      in.map[inner] = ValueId{outer};
      return {};
    }
    in.map[inner] = out_.add(Tensor{.dtype = t->dtype,
                                    .max = t->dims,
                                    .data = {},
                                    .dim_order = {},
                                    .unsupported = t->unsupported},
                             blob_label(in.call.delegate, inner));
    out_.emit(kCopyOp, {ValueId{outer}, in.map[inner]});
    return {};
  }
  if (!std::holds_alternative<program::BlobSymInt>(in.blob.values[inner])) {
    return invalid_program(fmt::format(
        "input {} of delegate {} is neither a tensor nor a symbolic integer", i, in.call.delegate));
  }
  if (is_tensor(outer)) {
    in.map[inner] = out_.add(LiveScalar{}, blob_label(in.call.delegate, inner));
    out_.emit(kItemOp, {ValueId{outer}, in.map[inner]});
    return {};
  }
  if (!std::holds_alternative<int64_t>(method_.values[outer])) {
    return invalid_program(fmt::format("input {} of delegate {}: expected an int, got {}", i,
                                       in.call.delegate, kind_name(out_.graph().values[outer])));
  }
  in.map[inner] = ValueId{outer};
  return {};
}

// True if the blob writes the program's value directly; false if a copy must follow.
Result<bool> Delegates::bind_output(Inlining& in, size_t i) {
  const uint32_t inner = in.blob.outputs[i];
  const uint32_t outer = in.call.args[in.blob.inputs.size() + i];
  if (const auto* t = std::get_if<BlobTensor>(&in.blob.values[inner])) {
    const auto* record = std::get_if<TensorRecord>(&method_.values[outer]);
    if (record == nullptr) {
      return invalid_program(fmt::format("output {} of delegate {}: expected a tensor, got {}", i,
                                         in.call.delegate, kind_name(out_.graph().values[outer])));
    }
    PTERYX_TRY(expect_same_dims(in.call.delegate, "output", i, *t, *record));
    for (size_t k = 0; k < in.blob.inputs.size(); ++k) {
      if (in.call.args[k] == outer) return false;  // still needed as an input
    }
    if (record->dtype != t->dtype || record->data || t->constant || in.mutated[inner] ||
        in.map[inner] != kNoValue) {
      return false;
    }
    in.map[inner] = ValueId{outer};
    return true;
  }
  if (!std::holds_alternative<program::BlobSymInt>(in.blob.values[inner])) {
    return invalid_program(
        fmt::format("output {} of delegate {} is neither a tensor nor a symbolic integer", i,
                    in.call.delegate));
  }
  if (const auto* slot = std::get_if<TensorRecord>(&method_.values[outer])) {
    const bool fits =
        numel(slot->sizes) == 1 && (slot->dtype == DType::kI32 || slot->dtype == DType::kI64);
    if (fits) return false;
    return invalid_program(fmt::format(
        "output {} of delegate {} is a symbolic integer: expected an int or a tensor of one i32 or "
        "i64, got {} {}",
        i, in.call.delegate, name(slot->dtype), to_string(slot->sizes)));
  }
  if (!std::holds_alternative<int64_t>(method_.values[outer])) {
    return invalid_program(fmt::format("output {} of delegate {}: expected an int, got {}", i,
                                       in.call.delegate, kind_name(out_.graph().values[outer])));
  }
  if (in.map[inner] != kNoValue) return false;
  in.map[inner] = ValueId{outer};
  return true;
}

// From a value of the blob to one of the program.
void Delegates::move_output(ValueId from, ValueId to) {
  const Tensor* slot = out_.graph().tensor(to);
  if (slot == nullptr) {
    out_.emit(kScalarMoveOp, {from, to});
  } else if (out_.graph().tensor(from) != nullptr) {
    out_.emit(kCopyOp, {from, to});
  } else {
    const ValueId size = out_.add(IntList{{slot->max.begin(), slot->max.end()}},
                                  std::string(out_.graph().label(to)));
    const ValueId none = out_.add(Null{}, "None");
    out_.emit(kFull, {size, from, none, none, none, none, to});
  }
}

Status Delegates::add_blob_values(Inlining& in) {
  auto& shared = blob_constants_[in.call.delegate];  // constants and state are one per delegate
  const auto& prepacked = blob_prepacked_[in.call.delegate];
  for (uint32_t v = 0; v < in.blob.values.size(); ++v) {
    if (in.map[v] != kNoValue || std::holds_alternative<BlobValueList>(in.blob.values[v])) continue;
    if (const auto it = prepacked.find(v); it != prepacked.end()) {
      in.map[v] = it->second;
      continue;
    }
    const auto* t = std::get_if<BlobTensor>(&in.blob.values[v]);
    const bool constant = t != nullptr && t->constant;
    if (constant) {
      if (const auto it = shared.find(v); it != shared.end()) {
        in.map[v] = it->second;
        continue;
      }
    }
    in.map[v] = out_.add(blob_value(in.blob.values[v]), blob_label(in.call.delegate, v));
    if (constant) shared.emplace(v, in.map[v]);
  }
  for (uint32_t v = 0; v < in.blob.values.size(); ++v) {
    const auto* list = std::get_if<BlobValueList>(&in.blob.values[v]);
    if (list == nullptr) continue;
    ValueList mapped;
    for (const uint32_t item : list->items) {
      const bool none = std::holds_alternative<program::NullRecord>(in.blob.values[item]);
      mapped.items.push_back(none ? kNoValue : in.map[item]);
    }
    in.map[v] = out_.add(std::move(mapped), blob_label(in.call.delegate, v));
  }
  return {};
}

Status Delegates::add_blob_call(Inlining& in, const BlobCall& call) {
  if (call.args.empty()) {
    return invalid_program(fmt::format("delegate {}, call {} ({}) has no arguments",
                                       in.call.delegate, call.node_id, call.name));
  }
  if (call.name == kPrepack) return prepack(in, call);
  std::vector<ValueId> args;
  args.reserve(call.args.size());
  for (const uint32_t a : call.args) args.push_back(in.map[a]);
  out_.emit(call.name, std::move(args));
  return {};
}

// The result of a prepack is the constant itself, in memory of its own if it is written later.
Status Delegates::prepack(Inlining& in, const BlobCall& call) {
  auto& shared = blob_prepacked_[in.call.delegate];
  if (call.args.size() == 2 && shared.contains(call.args[1])) return {};  // done by an earlier call
  const auto* from = call.args.size() == 2 ? out_.graph().tensor(in.map[call.args[0]]) : nullptr;
  const auto* to = call.args.size() == 2 ? out_.graph().tensor(in.map[call.args[1]]) : nullptr;
  if (from != nullptr && to != nullptr &&
      (!from->unsupported.empty() || !to->unsupported.empty())) {
    out_.emit(call.name, {in.map[call.args[0]], in.map[call.args[1]]});  // reported with all others
    return {};
  }
  if (from == nullptr || to == nullptr || !from->has_data() || from->dtype != to->dtype ||
      from->max != to->max || to->has_data()) {
    return invalid_program(
        fmt::format("delegate {}, call {}: prepack needs a constant and a result of equal type and "
                    "shape",
                    in.call.delegate, call.node_id));
  }
  const std::vector<ByteRange> data = from->data;
  const ValueId target = in.map[call.args[1]];
  if (index(target) <
      method_.values.size()) {  // the result leaves the delegate: it must be written each run
    out_.emit(kCopyOp, {in.map[call.args[0]], target});
    return {};
  }
  std::get_if<Tensor>(&out_.graph().values[index(target)])->data = data;
  shared.emplace(call.args[1], target);
  return {};
}

}  // namespace pteryx::graph

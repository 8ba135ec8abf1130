// Scalars, lists and tensors of a method, with the place and the data of each tensor.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/values.h"

#include <array>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/program/program_generated.h"

namespace pteryx::program {
namespace {

using pte::KernelTypes;

class ValueReader {
 public:
  ValueReader(const pte::ExecutionPlan& plan, std::span<const uint64_t> buffer_sizes,
              const MethodSources& sources, Budget& budget)
      : values_(*plan.values()), buffer_sizes_(buffer_sizes), sources_(sources), budget_(budget) {}

  Result<ValueRecord> read(uint32_t i) {
    const pte::EValue& v = *values_.Get(i);
    if (v.val_type() == KernelTypes::Null) return ValueRecord(NullRecord{});
    if (v.val() == nullptr && v.val_type() != KernelTypes::NONE &&
        v.val_type() <= KernelTypes::MAX) {
      return invalid_program(
          fmt::format("kind {} without content", pte::EnumNameKernelTypes(v.val_type())));
    }
    switch (v.val_type()) {
      case KernelTypes::Int: return ValueRecord(v.val_as_Int()->int_val());
      case KernelTypes::Bool: return ValueRecord(v.val_as_Bool()->bool_val());
      case KernelTypes::Double: return ValueRecord(v.val_as_Double()->double_val());
      case KernelTypes::String: return text(v.val_as_String()->string_val());
      case KernelTypes::Tensor: return tensor(*v.val_as_Tensor());
      case KernelTypes::IntList: return int_list(v.val_as_IntList()->items());
      case KernelTypes::DoubleList: return doubles(v.val_as_DoubleList()->items());
      case KernelTypes::BoolList: return bools(v.val_as_BoolList()->items());
      case KernelTypes::TensorList: return tensors(v.val_as_TensorList()->items(), i);
      case KernelTypes::OptionalTensorList:
        return optional_tensors(v.val_as_OptionalTensorList()->items());
      default:
        return invalid_program(fmt::format("unknown kind {}", static_cast<int>(v.val_type())));
    }
  }

 private:
  Result<ValueRecord> text(const flatbuffers::String* from) {
    if (from == nullptr) return invalid_program("missing string");
    PTERYX_ASSIGN(std::string copy, copy_text(from, budget_));
    return ValueRecord(std::move(copy));
  }

  Status check_item(uint32_t j, int64_t index) const {
    if (index < 0 || index >= values_.size()) {
      return invalid_program(
          fmt::format("item {} refers to value {} of {}", j, index, values_.size()));
    }
    return {};
  }
  KernelTypes kind(int64_t index) const {
    return values_.Get(static_cast<uint32_t>(index))->val_type();
  }

  Result<ValueRecord> int_list(const flatbuffers::Vector<int64_t>* items) {
    if (items == nullptr) return invalid_program("list has no items");
    for (uint32_t j = 0; j < items->size(); ++j) {
      const int64_t index = item(*items, j);
      PTERYX_TRY(check_item(j, index));
      if (kind(index) != KernelTypes::Int) {
        return invalid_program(fmt::format("item {} (value {}) is not an integer", j, index));
      }
    }
    IntListRecord record;
    PTERYX_ASSIGN(record.items, copy_list<uint32_t>(items, budget_));
    return ValueRecord(std::move(record));
  }

  Result<ValueRecord> doubles(const flatbuffers::Vector<double>* items) {
    if (items == nullptr) return invalid_program("list has no items");
    DoubleListRecord record;
    PTERYX_ASSIGN(record.items, copy_list<double>(items, budget_));
    return ValueRecord(std::move(record));
  }

  Result<ValueRecord> bools(const flatbuffers::Vector<uint8_t>* items) {
    if (items == nullptr) return invalid_program("list has no items");
    BoolListRecord record;
    PTERYX_TRY(budget_.take(items->size(), 1));
    record.items.reserve(items->size());
    for (const uint8_t v : *items) record.items.push_back(v != 0);
    return ValueRecord(std::move(record));
  }

  // Upstream fills the table in order, so a list of tensors names tensors before it.
  Result<ValueRecord> tensors(const flatbuffers::Vector<int32_t>* items, uint32_t self) {
    if (items == nullptr) return invalid_program("list has no items");
    TensorListRecord record;
    PTERYX_TRY(budget_.take(items->size(), sizeof(record.items[0])));
    record.items.reserve(items->size());
    for (uint32_t j = 0; j < items->size(); ++j) {
      const int32_t index = item(*items, j);
      PTERYX_TRY(check_item(j, index));
      if (kind(index) != KernelTypes::Tensor) {
        return invalid_program(fmt::format("item {} (value {}) is not a tensor", j, index));
      }
      if (static_cast<uint32_t>(index) > self) {
        return invalid_program(fmt::format("item {} (value {}) comes after the list", j, index));
      }
      record.items.emplace_back(static_cast<uint32_t>(index));
    }
    return ValueRecord(std::move(record));
  }

  Result<ValueRecord> optional_tensors(const flatbuffers::Vector<int32_t>* items) {
    if (items == nullptr) return invalid_program("list has no items");
    TensorListRecord record;
    PTERYX_TRY(budget_.take(items->size(), sizeof(record.items[0])));
    record.items.reserve(items->size());
    for (uint32_t j = 0; j < items->size(); ++j) {
      const int32_t index = item(*items, j);
      if (index == -1) {
        record.items.emplace_back();
        continue;
      }
      PTERYX_TRY(check_item(j, index));
      if (kind(index) == KernelTypes::Tensor) {
        record.items.emplace_back(static_cast<uint32_t>(index));
      } else if (kind(index) == KernelTypes::Null) {
        record.items.emplace_back();
      } else {
        return invalid_program(fmt::format("item {} (value {}) is not a tensor", j, index));
      }
    }
    return ValueRecord(std::move(record));
  }

  Result<ValueRecord> tensor(const pte::Tensor& from) {
    auto known = known_tensor(from);
    if (known.ok() || known.status().code() != Code::kUnsupported) return known;
    TensorRecord record;
    record.unsupported = known.status().message();
    PTERYX_TRY(budget_.take(record.unsupported.size(), 1));
    PTERYX_ASSIGN(record.placement, placement(from, 0));
    return ValueRecord(std::move(record));
  }

  Result<ValueRecord> known_tensor(const pte::Tensor& from) {
    PTERYX_ASSIGN(TensorLayout layout, read_layout(static_cast<int8_t>(from.scalar_type()),
                                                   from.sizes(), from.dim_order()));
    PTERYX_TRY(budget_.take(layout.dim_order.size(), 1));
    if (from.storage_offset() != 0) {
      return unsupported(fmt::format("storage offset {} is not supported", from.storage_offset()));
    }
    TensorRecord record;
    PTERYX_ASSIGN(record.dynamic, is_dynamic(from));
    PTERYX_TRY(check_device(from));
    PTERYX_ASSIGN(record.placement, placement(from, size_bytes(layout)));
    PTERYX_ASSIGN(record.data, data(from, layout));
    record.dtype = layout.dtype;
    record.sizes = layout.sizes;
    record.dim_order = std::move(layout.dim_order);
    return ValueRecord(std::move(record));
  }

  static Result<bool> is_dynamic(const pte::Tensor& from) {
    switch (from.shape_dynamism()) {
      case pte::TensorShapeDynamism::STATIC: return false;
      case pte::TensorShapeDynamism::DYNAMIC_BOUND: return true;
      case pte::TensorShapeDynamism::DYNAMIC_UNBOUND:
        return unsupported("unbounded dynamic shapes are not supported");
    }
    return invalid_program(
        fmt::format("unknown shape dynamism {}", static_cast<int>(from.shape_dynamism())));
  }

  static Status check_device(const pte::Tensor& from) {
    const auto* const extra = from.extra_tensor_info();
    if (extra == nullptr || extra->device_type() == pte::DeviceType::CPU) return {};
    return unsupported(fmt::format("tensor placed on {}", device_name(extra->device_type())));
  }

  Result<std::optional<Placement>> placement(const pte::Tensor& from, uint64_t size) const {
    const auto* const where = from.allocation_info();
    if (where == nullptr) return std::optional<Placement>();
    const Placement p = {
        .buffer = where->memory_id(),
        .offset = uint64_t{where->memory_offset_high()} << 32 | where->memory_offset_low()};
    if (p.buffer == 0 || p.buffer >= buffer_sizes_.size()) {
      return invalid_program(fmt::format("memory id {} of {}", p.buffer, buffer_sizes_.size()));
    }
    if (!in_range(p.offset, size, buffer_sizes_[p.buffer])) {
      return invalid_program(fmt::format("[{}, +{}) exceeds planned buffer {} ({})", p.offset, size,
                                         p.buffer, buffer_sizes_[p.buffer]));
    }
    return std::optional(p);
  }

  // With a placement the data is the tensor's first value, without one it is a constant.
  Result<std::optional<ByteRange>> data(const pte::Tensor& from, const TensorLayout& layout) {
    const auto wrap = [](Result<ByteRange> range) -> Result<std::optional<ByteRange>> {
      if (!range.ok()) return std::move(range).status();
      return std::optional(*range);
    };
    const auto* const extra = from.extra_tensor_info();
    const auto location = extra == nullptr ? pte::TensorDataLocation::SEGMENT : extra->location();
    if (location == pte::TensorDataLocation::EXTERNAL) {
      const std::string_view key = view(extra->fully_qualified_name());
      PTERYX_TRY(budget_.take(key.size(), 1));  // a look-up reads the key
      return wrap(external_data(sources_.named_data, key, layout));
    }
    if (location != pte::TensorDataLocation::SEGMENT) {
      return invalid_program(fmt::format("unknown data location {}", static_cast<int>(location)));
    }
    if (from.data_buffer_idx() == 0) return std::optional<ByteRange>();
    return wrap(from.allocation_info() == nullptr
                    ? sources_.constants.constant(from.data_buffer_idx(), layout)
                    : sources_.constants.initial_value(from.data_buffer_idx(), layout));
  }

  const flatbuffers::Vector<flatbuffers::Offset<pte::EValue>>& values_;
  std::span<const uint64_t> buffer_sizes_;
  const MethodSources& sources_;
  Budget& budget_;
};

// In the order of ValueRecord.
constexpr std::array<std::string_view, std::variant_size_v<ValueRecord>> kKindNames = {
    "null",
    "an integer",
    "a bool",
    "a double",
    "a string",
    "a tensor",
    "a list of integers",
    "a list of doubles",
    "a list of bools",
    "a list of tensors"};

}  // namespace

Result<std::vector<ValueRecord>> read_values(const pte::ExecutionPlan& plan,
                                             std::span<const uint64_t> buffer_sizes,
                                             const MethodSources& sources, Budget& budget) {
  const uint32_t n = plan.values()->size();
  PTERYX_TRY(budget.take(n, sizeof(ValueRecord)));
  std::vector<ValueRecord> values;
  values.reserve(n);
  ValueReader reader(plan, buffer_sizes, sources, budget);
  for (uint32_t i = 0; i < n; ++i) {
    auto value = reader.read(i);
    if (!value.ok()) return at(fmt::format("value {}", i), value.status());
    values.push_back(std::move(value).value());
  }
  return values;
}

Status check_indices(std::string_view what, const flatbuffers::Vector<int32_t>& list,
                     size_t values) {
  for (uint32_t i = 0; i < list.size(); ++i) {
    const int32_t index = item(list, i);
    if (index < 0 || static_cast<size_t>(index) >= values) {
      return invalid_program(fmt::format("{} {} refers to value {} of {}", what, i, index, values));
    }
  }
  return {};
}

std::string_view kind_name(const ValueRecord& value) { return kKindNames[value.index()]; }

bool is_list(const ValueRecord& value) { return value.index() > 5; }

std::string device_name(pte::DeviceType type) {
  const char* const known = pte::EnumNameDeviceType(type);
  return fmt::format("device type {}",
                     *known != '\0' ? std::string(known) : std::to_string(static_cast<int>(type)));
}

}  // namespace pteryx::program

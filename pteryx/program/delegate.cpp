// The VH00 header and the VK00 graph of a VulkanBackend delegate. SPDX-License-Identifier:
// BSD-3-Clause
#include "pteryx/program/delegate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/program/reader.h"
#include "pteryx/program/vk_graph_generated.h"

namespace pteryx::program {
namespace {

using vk::GraphTypes;

constexpr uint64_t kNamed =
    std::numeric_limits<uint64_t>::max();  // offset of a constant that is named data
// Ids of memory objects may leave gaps but become array indices, so they stay near the number of
// values.
constexpr uint64_t kMemoryObjectGap = 1U << 16;

std::string_view characters(Bytes bytes, size_t offset) {
  return {reinterpret_cast<const char*>(bytes.data()) + offset, 4};
}

Result<ByteRange> region(const ByteRange& blob, uint64_t offset, uint64_t size) {
  const auto range = slice(blob, offset, size);
  if (!range) {
    return invalid_program(fmt::format("delegate header: region [{}, +{}) exceeds blob of {}",
                                       offset, size, blob.size));
  }
  return *range;
}

Result<DType> read_dtype(vk::VkDataType type) {
  switch (type) {
    case vk::VkDataType::BOOL: return DType::kBool;
    case vk::VkDataType::UINT8: return DType::kU8;
    case vk::VkDataType::INT8: return DType::kI8;
    case vk::VkDataType::INT32: return DType::kI32;
    case vk::VkDataType::FLOAT16: return DType::kF16;
    case vk::VkDataType::FLOAT32: return DType::kF32;
    case vk::VkDataType::FLOAT64: return DType::kF64;
    case vk::VkDataType::INT64: return DType::kI64;
    case vk::VkDataType::UNSET: return unsupported("unsupported dtype UNSET");
  }
  return unsupported(fmt::format("unsupported dtype number {}", static_cast<int>(type)));
}

// In the order of BlobValue.
constexpr std::array<std::string_view, std::variant_size_v<BlobValue>> kKindNames = {
    "null",
    "an integer",
    "a double",
    "a bool",
    "a string",
    "a tensor",
    "a symbolic integer",
    "a list of integers",
    "a list of doubles",
    "a list of bools",
    "a list of values"};

class GraphReader {
 public:
  GraphReader(const vk::VkGraph& graph, const ByteRange& inline_constants,
              const NamedData& named_data, uint64_t bytes)
      : graph_(graph),
        inline_(inline_constants),
        named_(named_data),
        budget_(bytes),
        n_(count(graph.values())) {}

  Result<Blob> read() {
    Blob blob;
    PTERYX_ASSIGN(blob.values, values());
    PTERYX_ASSIGN(blob.chain, chain());
    PTERYX_ASSIGN(blob.inputs, ends("input", graph_.input_ids(), blob.values));
    PTERYX_ASSIGN(blob.outputs, ends("output", graph_.output_ids(), blob.values));
    std::vector<bool> seen(n_);
    for (size_t i = 0; i < blob.inputs.size(); ++i) {
      if (seen[blob.inputs[i]]) {
        return invalid_program(fmt::format("input {} refers to value {}, which is an input already",
                                           i, blob.inputs[i]));
      }
      seen[blob.inputs[i]] = true;
    }
    return blob;
  }

 private:
  Result<std::vector<BlobValue>> values() {
    PTERYX_TRY(budget_.take(n_, sizeof(BlobValue)));
    std::vector<BlobValue> out;
    out.reserve(n_);
    for (uint32_t i = 0; i < n_; ++i) {
      auto v = value(*graph_.values()->Get(i));
      if (!v.ok()) return at(fmt::format("value {}", i), v.status());
      out.push_back(std::move(v).value());
    }
    return out;
  }

  Result<BlobValue> value(const vk::VkValue& v) {
    if (v.value_type() == GraphTypes::Null) return BlobValue(NullRecord{});
    if (v.value() == nullptr && v.value_type() != GraphTypes::NONE &&
        v.value_type() <= GraphTypes::MAX) {
      return invalid_program(fmt::format("malformed: kind {} without content",
                                         vk::EnumNameGraphTypes(v.value_type())));
    }
    switch (v.value_type()) {
      case GraphTypes::Int: return BlobValue(v.value_as_Int()->int_val());
      case GraphTypes::Double: return BlobValue(v.value_as_Double()->double_val());
      case GraphTypes::Bool: return BlobValue(v.value_as_Bool()->bool_val());
      case GraphTypes::VkTensor: return tensor(*v.value_as_VkTensor());
      case GraphTypes::IntList: return list<BlobIntList>(v.value_as_IntList()->items());
      case GraphTypes::DoubleList: return list<DoubleListRecord>(v.value_as_DoubleList()->items());
      case GraphTypes::BoolList: return bools(v.value_as_BoolList()->items());
      case GraphTypes::ValueList: return value_list(v.value_as_ValueList()->items());
      case GraphTypes::String: return text(v.value_as_String()->string_val());
      case GraphTypes::SymInt: return BlobValue(BlobSymInt{});
      default:
        return invalid_program(fmt::format("unknown kind {}", static_cast<int>(v.value_type())));
    }
  }

  template <typename Record, typename T>
  Result<BlobValue> list(const flatbuffers::Vector<T>* items) {
    Record record;
    PTERYX_ASSIGN(record.items, copy_list<T>(items, budget_));
    return BlobValue(std::move(record));
  }

  Result<BlobValue> bools(const flatbuffers::Vector<uint8_t>* items) {
    BoolListRecord record;
    PTERYX_TRY(budget_.take(count(items), 1));
    record.items.reserve(count(items));
    for (uint32_t i = 0; i < count(items); ++i) record.items.push_back(item(*items, i) != 0);
    return BlobValue(std::move(record));
  }

  Result<BlobValue> text(const flatbuffers::String* from) {
    if (from == nullptr) return invalid_program("malformed: missing string");
    PTERYX_ASSIGN(std::string copy, copy_text(from, budget_));
    return BlobValue(std::move(copy));
  }

  Result<BlobValue> value_list(const flatbuffers::Vector<int32_t>* items) {
    for (uint32_t j = 0; j < count(items); ++j) {
      const int32_t id = item(*items, j);
      if (id < 0 || static_cast<uint32_t>(id) >= n_) {
        return invalid_program(fmt::format("item {} refers to {} of {}", j, id, n_));
      }
      switch (graph_.values()->Get(static_cast<uint32_t>(id))->value_type()) {
        case GraphTypes::IntList:
        case GraphTypes::DoubleList:
        case GraphTypes::BoolList:
        case GraphTypes::ValueList:
          return invalid_program(fmt::format("item {} (value {}) is a list inside a list", j, id));
        default: break;
      }
    }
    BlobValueList record;
    PTERYX_ASSIGN(record.items, copy_list<uint32_t>(items, budget_));
    return BlobValue(std::move(record));
  }

  Result<BlobValue> tensor(const vk::VkTensor& from) {
    auto known = known_tensor(from);
    if (known.ok() || known.status().code() != Code::kUnsupported) return known;
    BlobTensor t;
    t.unsupported = known.status().message();
    PTERYX_TRY(budget_.take(t.unsupported.size(), 1));
    return BlobValue(std::move(t));
  }

  Result<BlobValue> known_tensor(const vk::VkTensor& from) {
    BlobTensor t;
    PTERYX_ASSIGN(t.dtype, read_dtype(from.datatype()));
    const uint32_t rank = count(from.dims());
    if (rank > kMaxRank) {
      return unsupported(fmt::format("rank: expected at most {}, got {}", kMaxRank, rank));
    }
    for (uint32_t i = 0; i < rank; ++i) t.dims.push_back(item(*from.dims(), i));
    const auto elements = checked_numel(t.dims.span(), size_bytes(t.dtype));
    if (!elements) return invalid_program(fmt::format("shape {} overflows", to_string(t.dims)));
    t.memory_object = std::max(from.mem_obj_id(), -1);
    if (t.memory_object >= 0 && static_cast<uint64_t>(t.memory_object) >= n_ + kMemoryObjectGap) {
      return invalid_program(
          fmt::format("memory object {} of a graph of {} values", t.memory_object, n_));
    }
    if (from.constant_id() >= 0) {
      PTERYX_TRY(constant(static_cast<uint32_t>(from.constant_id()),
                          static_cast<uint64_t>(*elements) * size_bytes(t.dtype), t));
    }
    return BlobValue(std::move(t));
  }

  Status constant(uint32_t id, uint64_t size, BlobTensor& t) {
    if (id >= count(graph_.constants())) {
      return invalid_program(fmt::format("constant {} of {}", id, count(graph_.constants())));
    }
    const vk::VkBytes& where = *graph_.constants()->Get(id);
    if (where.length() < size) {
      return invalid_program(
          fmt::format("constant {}: has length {}, need {}", id, where.length(), size));
    }
    t.constant = ByteRange();
    if (size == 0 && where.offset() != kNamed) return {};  // the offset of empty data means nothing
    PTERYX_ASSIGN(t.constant, where.offset() == kNamed ? named_constant(id, where, size, t)
                                                       : inline_constant(id, where.offset(), size));
    if (!is_aligned(*t.constant, t.dtype)) {
      return invalid_program(fmt::format("constant {}: is misaligned for {}", id, name(t.dtype)));
    }
    return {};
  }

  Result<ByteRange> inline_constant(uint32_t id, uint64_t offset, uint64_t size) const {
    const auto data = slice(inline_, offset, size);
    if (!data) {
      return invalid_program(fmt::format("constant {}: needs {} bytes at {}, region has {}", id,
                                         size, offset, inline_.size));
    }
    return *data;
  }

  Result<ByteRange> named_constant(uint32_t id, const vk::VkBytes& where, uint64_t size,
                                   BlobTensor& t) {
    if (count(where.named_key()) == 0)
      return invalid_program(fmt::format("constant {}: has no key", id));
    PTERYX_ASSIGN(t.constant_key, copy_text(where.named_key(), budget_));
    const auto found = named_.find(t.constant_key);
    if (found == named_.end()) {
      return invalid_program(fmt::format("constant {}: no data named {} (missing .ptd file?)", id,
                                         quote(t.constant_key)));
    }
    const ByteRange& data = found->second.data;
    if (data.size < size) {
      return invalid_program(fmt::format("constant {}: {} has {} bytes, need {}", id,
                                         quote(t.constant_key), data.size, size));
    }
    return *slice(data, 0, size);
  }

  Result<std::vector<BlobCall>> chain() {
    const uint32_t n = count(graph_.chain());
    PTERYX_TRY(budget_.take(n, sizeof(BlobCall)));
    std::vector<BlobCall> out;
    out.reserve(n);
    for (uint32_t c = 0; c < n; ++c) {
      const vk::OperatorCall& from = *graph_.chain()->Get(c);
      auto call = read_call(from);
      if (!call.ok()) {
        return at(fmt::format("call {} ({})", c, printable(view(from.name()))), call.status());
      }
      out.push_back(std::move(call).value());
    }
    return out;
  }

  Result<BlobCall> read_call(const vk::OperatorCall& from) {
    if (count(from.name()) == 0) return invalid_program("has no operator name");
    if (count(from.args()) == 0) return invalid_program("has no arguments");
    for (uint32_t j = 0; j < from.args()->size(); ++j) {
      const int32_t id = item(*from.args(), j);
      if (id < 0 || static_cast<uint32_t>(id) >= n_) {
        return invalid_program(fmt::format("argument {} refers to value {} of {}", j, id, n_));
      }
    }
    BlobCall call;
    call.node_id = from.node_id();
    PTERYX_ASSIGN(call.name, copy_name(from.name(), budget_));
    PTERYX_ASSIGN(call.args, copy_list<uint32_t>(from.args(), budget_));
    return call;
  }

  Result<std::vector<uint32_t>> ends(std::string_view what,
                                     const flatbuffers::Vector<uint32_t>* ids,
                                     const std::vector<BlobValue>& values) {
    for (uint32_t i = 0; i < count(ids); ++i) {
      const uint32_t id = item(*ids, i);
      if (id >= n_)
        return invalid_program(fmt::format("{} {} refers to value {} of {}", what, i, id, n_));
      const BlobValue& v = values[id];
      if (!std::holds_alternative<BlobTensor>(v) && !std::holds_alternative<BlobSymInt>(v)) {
        return invalid_program(fmt::format("{} {} refers to value {}, which is {}", what, i, id,
                                           kKindNames[v.index()]));
      }
    }
    return copy_list<uint32_t>(ids, budget_);
  }

  const vk::VkGraph& graph_;
  ByteRange inline_;
  const NamedData& named_;
  Budget budget_;
  uint32_t n_;
};

}  // namespace

Result<BlobRegions> read_blob_header(Bytes head, const ByteRange& blob) {
  if (head.size() < kBlobHead) {
    return invalid_program(fmt::format("delegate blob is not a Vulkan graph: {} bytes", blob.size));
  }
  if (characters(head, 4) != "VH00") {
    return invalid_program(
        fmt::format("delegate blob is not a Vulkan graph (magic {})", quote(characters(head, 4))));
  }
  const uint64_t header_size = *read_at<uint16_t>(head, 8);
  const uint64_t flatbuffer_offset = *read_at<uint32_t>(head, 10);
  const uint64_t flatbuffer_size = *read_at<uint32_t>(head, 14);
  const uint64_t bytes_offset = *read_at<uint32_t>(head, 18);
  const uint64_t bytes_size = *read_at<uint64_t>(head, 22);
  if (header_size < kBlobHead || header_size > flatbuffer_offset) {
    return invalid_program(fmt::format("delegate header size {}: expected {} to {}", header_size,
                                       kBlobHead, flatbuffer_offset));
  }
  BlobRegions r;
  PTERYX_ASSIGN(r.flatbuffer, region(blob, flatbuffer_offset, flatbuffer_size));
  if (bytes_offset < flatbuffer_offset + flatbuffer_size) {
    return invalid_program(
        fmt::format("delegate header: constants at {} overlap the graph [{}, +{})", bytes_offset,
                    flatbuffer_offset, flatbuffer_size));
  }
  // Files before release 1.0 have constants there but no size for them.
  const bool to_the_end = bytes_size == 0 && bytes_offset <= blob.size;
  PTERYX_ASSIGN(r.constants,
                region(blob, bytes_offset, to_the_end ? blob.size - bytes_offset : bytes_size));
  return r;
}

Result<Blob> parse_blob(const DelegateRecord& delegate, const NamedData& named_data) {
  PTERYX_ASSIGN(const BlobRegions regions, read_blob_header(delegate.head, delegate.blob));
  const Bytes flatbuffer = delegate.tables;
  if (flatbuffer.size() < 8 || characters(flatbuffer, 4) != "VK00") {
    return invalid_program(
        fmt::format("delegate graph identifier {} != 'VK00'",
                    flatbuffer.size() < 8 ? "''" : quote(characters(flatbuffer, 4))));
  }
  const auto* const graph = verified_root<vk::VkGraph>(flatbuffer);
  if (graph == nullptr)
    return invalid_program("delegate graph is corrupt (FlatBuffer verification failed)");
  return GraphReader(*graph, regions.constants, named_data, flatbuffer.size()).read();
}

}  // namespace pteryx::program

// Programs, delegate blobs and data files built in memory, for tests. What they build is correct
// unless told otherwise.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/program/flat_tensor_generated.h"
#include "pteryx/program/program_generated.h"
#include "pteryx/program/vk_graph_generated.h"

namespace pteryx::program::testing {

// Bytes of a file, at an address aligned to 64 as in a mapped file.
class FileBytes {
 public:
  explicit FileBytes(std::string_view content);
  Bytes bytes() const { return Bytes(blocks_.data()->data(), size_); }
  operator Bytes() const { return bytes(); }  // NOLINT: implicit by design
  size_t size() const { return size_; }
  FileBytes first(size_t n) const;
  std::string text() const;
  // Overwrites a little-endian scalar.
  template <typename T>
  FileBytes& put(size_t offset, T value) {
    std::memcpy(blocks_.data()->data() + offset, &value, sizeof(T));
    return *this;
  }

 private:
  struct alignas(64) Block : std::array<std::byte, 64> {};
  std::vector<Block> blocks_;
  size_t size_;
};

// Which bytes stand between the FlatBuffer's first 8 and the others.
enum class Header { kNone, kShort, kLong };

// The parts of a .pte in one file.
FileBytes assemble_pte(const flatbuffers::FlatBufferBuilder& fbb,
                       const std::vector<std::string>& segments, Header header = Header::kLong);

struct TensorSpec {
  pte::ScalarType dtype = pte::ScalarType::FLOAT;
  std::vector<int32_t> sizes = {2, 3};
  std::optional<std::vector<uint8_t>> dim_order;  // the usual one when not given
  pte::TensorShapeDynamism dynamism = pte::TensorShapeDynamism::STATIC;
  uint32_t data = 0;    // index of its constant or initial value
  uint32_t buffer = 0;  // of its placement; 0 for none
  uint64_t offset = 0;
  std::optional<std::string> external_key;
  int32_t storage_offset = 0;
  pte::DeviceType device = pte::DeviceType::CPU;
};

// One method and what it refers to. Members may be changed up to finish(); the add functions give
// back an index.
class ProgramBuilder {
 public:
  using Value = flatbuffers::Offset<pte::EValue>;
  using Instruction = flatbuffers::Offset<pte::Instruction>;

  int32_t add_value(pte::KernelTypes kind, flatbuffers::Offset<void> content);
  int32_t add_null() { return add_value(pte::KernelTypes::Null, pte::CreateNull(fbb).Union()); }
  int32_t add_int(int64_t v) {
    return add_value(pte::KernelTypes::Int, pte::CreateInt(fbb, v).Union());
  }
  int32_t add_bool(bool v) {
    return add_value(pte::KernelTypes::Bool, pte::CreateBool(fbb, v).Union());
  }
  int32_t add_double(double v) {
    return add_value(pte::KernelTypes::Double, pte::CreateDouble(fbb, v).Union());
  }
  int32_t add_string(const char* v);
  int32_t add_int_list(const std::vector<int64_t>& values);  // indices of Int values
  int32_t add_double_list(const std::vector<double>& items);
  int32_t add_bool_list(const std::vector<uint8_t>& items);
  int32_t add_tensor_list(const std::vector<int32_t>& values);
  int32_t add_optional_tensor_list(const std::vector<int32_t>& values);
  int32_t add_tensor(const TensorSpec& spec = {});

  int32_t add_operator(const char* name, const char* overload);
  int32_t add_delegate(const char* id, std::string_view blob);         // in a segment of its own
  int32_t add_inline_delegate(const char* id, std::string_view blob);  // in the FlatBuffer
  uint32_t add_segment(std::string_view content);
  void add_named_data(const char* key, uint32_t segment);

  void add_instruction(pte::InstructionArguments kind, flatbuffers::Offset<void> content);
  void add_kernel_call(int32_t op, const std::vector<int32_t>& args);
  void add_delegate_call(int32_t delegate, const std::vector<int32_t>& args);
  void add_move(int32_t from, int32_t to);
  void add_jump_false(int32_t condition, int32_t destination);
  void add_free(int32_t value);
  void next_chain();

  // Names fields of the method that finish() leaves out.
  void leave_out(const char* field) { absent_.emplace_back(field); }
  FileBytes finish(Header header = Header::kLong);

  flatbuffers::FlatBufferBuilder fbb;
  const char* name = "forward";
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<int64_t> buffer_sizes = {0, 1024};
  std::vector<flatbuffers::Offset<pte::NonConstBufferDevice>> buffer_devices;
  std::vector<flatbuffers::Offset<pte::BackendDelegate>> delegates;
  std::vector<flatbuffers::Offset<pte::Operator>> operators;
  std::vector<flatbuffers::Offset<pte::Buffer>> inline_constants;
  std::vector<flatbuffers::Offset<pte::NamedData>> named_data;
  // Where constants and initial values start in their segments; entry 0 is unused.
  uint32_t constant_segment = 0;
  std::vector<uint64_t> constant_offsets = {0};
  uint32_t initial_value_segment = 0;
  std::vector<uint64_t> initial_value_offsets;
  // Methods beside the one that is being built.
  std::vector<flatbuffers::Offset<pte::ExecutionPlan>> plans;
  // Replaces the entries made by add_segment.
  std::optional<std::vector<flatbuffers::Offset<pte::DataSegment>>> segment_table;

 private:
  bool has(std::string_view field) const;
  flatbuffers::Offset<pte::ExecutionPlan> finish_plan();

  std::vector<Value> values_;
  std::vector<std::vector<Instruction>> chains_ = {{}};
  std::vector<flatbuffers::Offset<pte::BackendDelegateInlineData>> inline_blobs_;
  std::vector<std::string> segments_;
  std::vector<std::string> absent_;
};

struct BlobTensorSpec {
  vk::VkDataType dtype = vk::VkDataType::FLOAT32;
  std::vector<uint32_t> dims = {2, 3};
  int32_t constant = -1;
  int32_t memory_object = -1;
};

// The graph of a VulkanBackend delegate.
class BlobBuilder {
 public:
  int32_t add_value(vk::GraphTypes kind, flatbuffers::Offset<void> content);
  int32_t add_null() { return add_value(vk::GraphTypes::Null, vk::CreateNull(fbb).Union()); }
  int32_t add_int(int64_t v) {
    return add_value(vk::GraphTypes::Int, vk::CreateInt(fbb, v).Union());
  }
  int32_t add_double(double v) {
    return add_value(vk::GraphTypes::Double, vk::CreateDouble(fbb, v).Union());
  }
  int32_t add_bool(bool v) {
    return add_value(vk::GraphTypes::Bool, vk::CreateBool(fbb, v).Union());
  }
  int32_t add_symint() { return add_value(vk::GraphTypes::SymInt, vk::CreateSymInt(fbb).Union()); }
  int32_t add_string(const char* v);
  int32_t add_int_list(const std::vector<int64_t>& items);
  int32_t add_double_list(const std::vector<double>& items);
  int32_t add_bool_list(const std::vector<uint8_t>& items);
  int32_t add_value_list(const std::vector<int32_t>& ids);
  int32_t add_tensor(const BlobTensorSpec& spec = {});
  void add_call(const char* op, const std::vector<int32_t>& args);
  int32_t add_inline_constant(uint64_t offset, uint64_t length);
  int32_t add_named_constant(const char* key, uint64_t length);

  // The blob, with `inline_bytes` as its region of constants.
  std::string finish(std::string_view inline_bytes = {});

  flatbuffers::FlatBufferBuilder fbb;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  std::vector<flatbuffers::Offset<vk::OperatorCall>> chain;
  std::vector<flatbuffers::Offset<vk::VkBytes>> constants;

 private:
  std::vector<flatbuffers::Offset<vk::VkValue>> values_;
};

struct LayoutSpec {
  pte::ScalarType dtype = pte::ScalarType::FLOAT;
  std::vector<int32_t> sizes;
  std::vector<uint8_t> dim_order;
};

// A .ptd file.
class DataFileBuilder {
 public:
  uint32_t add_segment(std::string_view content);
  void add_entry(const char* key, uint32_t segment, const std::optional<LayoutSpec>& layout = {});
  FileBytes finish();

  flatbuffers::FlatBufferBuilder fbb;
  uint32_t version = 0;
  // Replaces the entries made by add_segment.
  std::optional<std::vector<flatbuffers::Offset<ptd::DataSegment>>> segment_table;
  std::vector<flatbuffers::Offset<ptd::NamedData>> entries;
  void leave_out_tables() { tables_ = false; }

 private:
  std::vector<std::string> segments_;
  bool tables_ = true;
};

// A file below tests/fixtures.
std::string fixture_path(std::string_view name);
FileBytes read_fixture(std::string_view name);

}  // namespace pteryx::program::testing

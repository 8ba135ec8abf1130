// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/testing/build.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include <gtest/gtest.h>

#include "pteryx/base/checked.h"

namespace pteryx::program::testing {
namespace {

constexpr size_t kSegmentAlignment = 128;

template <typename T>
std::string scalar_text(T v) {
  return {reinterpret_cast<const char*>(&v), sizeof(T)};
}

void pad_to(std::string& text, size_t alignment) { text.resize(align_up(text.size(), alignment)); }

std::string_view finished(const flatbuffers::FlatBufferBuilder& fbb) {
  return {reinterpret_cast<const char*>(fbb.GetBufferPointer()), fbb.GetSize()};
}

// The FlatBuffer with bytes inserted after its first 8.
std::string with_header(std::string_view flatbuffer, std::string_view header) {
  std::string out(flatbuffer.substr(0, 8));
  uint32_t root = 0;
  std::memcpy(&root, out.data(), sizeof(root));
  root += static_cast<uint32_t>(header.size());
  std::memcpy(out.data(), &root, sizeof(root));
  out += header;
  out += flatbuffer.substr(8);
  return out;
}

// Segments one after another, and where each starts.
struct Packed {
  std::string data;
  std::vector<uint64_t> offsets;
};
Packed pack(const std::vector<std::string>& segments) {
  Packed p;
  for (const std::string& s : segments) {
    if (!s.empty()) pad_to(p.data, kSegmentAlignment);
    p.offsets.push_back(p.data.size());
    p.data += s;
  }
  return p;
}

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

FileBytes::FileBytes(std::string_view content)
    : blocks_(content.size() / sizeof(Block) + 1), size_(content.size()) {
  std::memcpy(blocks_.data(), content.data(), content.size());
}

FileBytes FileBytes::first(size_t n) const { return FileBytes(text().substr(0, n)); }

std::string FileBytes::text() const {
  return {reinterpret_cast<const char*>(bytes().data()), size_};
}

FileBytes assemble_pte(const flatbuffers::FlatBufferBuilder& fbb,
                       const std::vector<std::string>& segments, Header header) {
  const std::string_view flatbuffer = finished(fbb);
  if (header == Header::kNone) return FileBytes(flatbuffer);
  const Packed packed = pack(segments);
  constexpr size_t kInserted = 32;
  const uint64_t program_size = flatbuffer.size() + kInserted;
  std::string bytes = "eh00";
  bytes += scalar_text<uint32_t>(header == Header::kShort ? 24 : 32);
  bytes += scalar_text<uint64_t>(program_size);
  bytes +=
      scalar_text<uint64_t>(packed.data.empty() ? 0 : align_up(program_size, kSegmentAlignment));
  bytes += scalar_text<uint64_t>(header == Header::kShort ? 0 : packed.data.size());
  std::string file = with_header(flatbuffer, bytes);
  if (!packed.data.empty()) pad_to(file, kSegmentAlignment);
  return FileBytes(file + packed.data);
}

int32_t ProgramBuilder::add_value(pte::KernelTypes kind, flatbuffers::Offset<void> content) {
  values_.push_back(pte::CreateEValue(fbb, kind, content));
  return static_cast<int32_t>(values_.size() - 1);
}

int32_t ProgramBuilder::add_string(const char* v) {
  return add_value(pte::KernelTypes::String, pte::CreateStringDirect(fbb, v).Union());
}
int32_t ProgramBuilder::add_int_list(const std::vector<int64_t>& values) {
  return add_value(pte::KernelTypes::IntList, pte::CreateIntListDirect(fbb, &values).Union());
}
int32_t ProgramBuilder::add_double_list(const std::vector<double>& items) {
  return add_value(pte::KernelTypes::DoubleList, pte::CreateDoubleListDirect(fbb, &items).Union());
}
int32_t ProgramBuilder::add_bool_list(const std::vector<uint8_t>& items) {
  return add_value(pte::KernelTypes::BoolList, pte::CreateBoolListDirect(fbb, &items).Union());
}
int32_t ProgramBuilder::add_tensor_list(const std::vector<int32_t>& values) {
  return add_value(pte::KernelTypes::TensorList, pte::CreateTensorListDirect(fbb, &values).Union());
}
int32_t ProgramBuilder::add_optional_tensor_list(const std::vector<int32_t>& values) {
  return add_value(pte::KernelTypes::OptionalTensorList,
                   pte::CreateOptionalTensorListDirect(fbb, &values).Union());
}

int32_t ProgramBuilder::add_tensor(const TensorSpec& spec) {
  std::vector<uint8_t> order(spec.sizes.size());
  std::iota(order.begin(), order.end(), uint8_t{0});
  if (spec.dim_order) order = *spec.dim_order;
  flatbuffers::Offset<pte::AllocationDetails> place;
  if (spec.buffer != 0) {
    place = pte::CreateAllocationDetails(fbb, spec.buffer, static_cast<uint32_t>(spec.offset),
                                         static_cast<uint32_t>(spec.offset >> 32));
  }
  flatbuffers::Offset<pte::ExtraTensorInfo> extra;
  if (spec.external_key || spec.device != pte::DeviceType::CPU) {
    extra = pte::CreateExtraTensorInfoDirect(
        fbb, 0, spec.external_key ? spec.external_key->c_str() : nullptr,
        spec.external_key ? pte::TensorDataLocation::EXTERNAL : pte::TensorDataLocation::SEGMENT,
        spec.device);
  }
  const auto tensor =
      pte::CreateTensorDirect(fbb, spec.dtype, spec.storage_offset, &spec.sizes, &order, false,
                              spec.data, place, 0, spec.dynamism, extra);
  return add_value(pte::KernelTypes::Tensor, tensor.Union());
}

int32_t ProgramBuilder::add_operator(const char* op, const char* overload) {
  operators.push_back(pte::CreateOperatorDirect(fbb, op, overload));
  return static_cast<int32_t>(operators.size() - 1);
}

int32_t ProgramBuilder::add_delegate(const char* id, std::string_view blob) {
  const std::vector<flatbuffers::Offset<pte::CompileSpec>> specs;
  const auto where =
      pte::CreateBackendDelegateDataReference(fbb, pte::DataLocation::SEGMENT, add_segment(blob));
  delegates.push_back(pte::CreateBackendDelegateDirect(fbb, id, where, &specs));
  return static_cast<int32_t>(delegates.size() - 1);
}

int32_t ProgramBuilder::add_inline_delegate(const char* id, std::string_view blob) {
  const std::vector<uint8_t> data(blob.begin(), blob.end());
  inline_blobs_.push_back(pte::CreateBackendDelegateInlineDataDirect(fbb, &data));
  const auto where = pte::CreateBackendDelegateDataReference(
      fbb, pte::DataLocation::INLINE, static_cast<uint32_t>(inline_blobs_.size() - 1));
  delegates.push_back(pte::CreateBackendDelegateDirect(fbb, id, where));
  return static_cast<int32_t>(delegates.size() - 1);
}

uint32_t ProgramBuilder::add_segment(std::string_view content) {
  segments_.emplace_back(content);
  return static_cast<uint32_t>(segments_.size() - 1);
}

void ProgramBuilder::add_named_data(const char* key, uint32_t segment) {
  named_data.push_back(pte::CreateNamedDataDirect(fbb, key, segment));
}

void ProgramBuilder::add_instruction(pte::InstructionArguments kind,
                                     flatbuffers::Offset<void> content) {
  chains_.back().push_back(pte::CreateInstruction(fbb, kind, content));
}
void ProgramBuilder::add_kernel_call(int32_t op, const std::vector<int32_t>& args) {
  add_instruction(pte::InstructionArguments::KernelCall,
                  pte::CreateKernelCallDirect(fbb, op, &args).Union());
}
void ProgramBuilder::add_delegate_call(int32_t delegate, const std::vector<int32_t>& args) {
  add_instruction(pte::InstructionArguments::DelegateCall,
                  pte::CreateDelegateCallDirect(fbb, delegate, &args).Union());
}
void ProgramBuilder::add_move(int32_t from, int32_t to) {
  add_instruction(pte::InstructionArguments::MoveCall, pte::CreateMoveCall(fbb, from, to).Union());
}
void ProgramBuilder::add_jump_false(int32_t condition, int32_t destination) {
  add_instruction(pte::InstructionArguments::JumpFalseCall,
                  pte::CreateJumpFalseCall(fbb, condition, destination).Union());
}
void ProgramBuilder::add_free(int32_t value) {
  add_instruction(pte::InstructionArguments::FreeCall, pte::CreateFreeCall(fbb, value).Union());
}
void ProgramBuilder::next_chain() { chains_.emplace_back(); }

bool ProgramBuilder::has(std::string_view field) const {
  return std::find(absent_.begin(), absent_.end(), field) == absent_.end();
}

flatbuffers::Offset<pte::ExecutionPlan> ProgramBuilder::finish_plan() {
  const std::vector<int32_t> none;
  std::vector<flatbuffers::Offset<pte::Chain>> chains;
  chains.reserve(chains_.size());
  for (const auto& instructions : chains_) {
    chains.push_back(pte::CreateChainDirect(fbb, &none, &none, &instructions));
  }
  return pte::CreateExecutionPlanDirect(
      fbb, has("name") ? name : nullptr, 0, has("values") ? &values_ : nullptr,
      has("inputs") ? &inputs : nullptr, has("outputs") ? &outputs : nullptr,
      has("chains") ? &chains : nullptr, &operators, has("delegates") ? &delegates : nullptr,
      has("non_const_buffer_sizes") ? &buffer_sizes : nullptr,
      buffer_devices.empty() ? nullptr : &buffer_devices);
}

FileBytes ProgramBuilder::finish(Header header) {
  if (has("execution_plan")) plans.push_back(finish_plan());
  std::vector<flatbuffers::Offset<pte::DataSegment>> table;
  table.reserve(segments_.size());
  const Packed packed = pack(segments_);
  for (size_t i = 0; i < segments_.size(); ++i) {
    table.push_back(pte::CreateDataSegment(fbb, packed.offsets[i], segments_[i].size()));
  }
  if (segment_table) table = *segment_table;
  const auto constants =
      pte::CreateSubsegmentOffsetsDirect(fbb, constant_segment, &constant_offsets);
  std::vector<flatbuffers::Offset<pte::SubsegmentOffsets>> initial_values;
  if (!initial_value_offsets.empty()) {
    initial_values.push_back(
        pte::CreateSubsegmentOffsetsDirect(fbb, initial_value_segment, &initial_value_offsets));
  }
  const auto root = pte::CreateProgramDirect(fbb, 0, &plans, &inline_constants, &inline_blobs_,
                                             has("segments") ? &table : nullptr, constants,
                                             initial_values.empty() ? nullptr : &initial_values,
                                             named_data.empty() ? nullptr : &named_data);
  pte::FinishProgramBuffer(fbb, root);
  return assemble_pte(fbb, segments_, header);
}

int32_t BlobBuilder::add_value(vk::GraphTypes kind, flatbuffers::Offset<void> content) {
  values_.push_back(vk::CreateVkValue(fbb, kind, content));
  return static_cast<int32_t>(values_.size() - 1);
}
int32_t BlobBuilder::add_string(const char* v) {
  return add_value(vk::GraphTypes::String, vk::CreateStringDirect(fbb, v).Union());
}
int32_t BlobBuilder::add_int_list(const std::vector<int64_t>& items) {
  return add_value(vk::GraphTypes::IntList, vk::CreateIntListDirect(fbb, &items).Union());
}
int32_t BlobBuilder::add_double_list(const std::vector<double>& items) {
  return add_value(vk::GraphTypes::DoubleList, vk::CreateDoubleListDirect(fbb, &items).Union());
}
int32_t BlobBuilder::add_bool_list(const std::vector<uint8_t>& items) {
  return add_value(vk::GraphTypes::BoolList, vk::CreateBoolListDirect(fbb, &items).Union());
}
int32_t BlobBuilder::add_value_list(const std::vector<int32_t>& ids) {
  return add_value(vk::GraphTypes::ValueList, vk::CreateValueListDirect(fbb, &ids).Union());
}
int32_t BlobBuilder::add_tensor(const BlobTensorSpec& spec) {
  return add_value(
      vk::GraphTypes::VkTensor,
      vk::CreateVkTensorDirect(fbb, spec.dtype, &spec.dims, spec.constant, spec.memory_object)
          .Union());
}

void BlobBuilder::add_call(const char* op, const std::vector<int32_t>& args) {
  chain.push_back(
      vk::CreateOperatorCallDirect(fbb, static_cast<uint32_t>(chain.size()), op, &args));
}

int32_t BlobBuilder::add_inline_constant(uint64_t offset, uint64_t length) {
  constants.push_back(vk::CreateVkBytesDirect(fbb, offset, length, ""));
  return static_cast<int32_t>(constants.size() - 1);
}
int32_t BlobBuilder::add_named_constant(const char* key, uint64_t length) {
  constants.push_back(vk::CreateVkBytesDirect(fbb, ~uint64_t{0}, length, key));
  return static_cast<int32_t>(constants.size() - 1);
}

std::string BlobBuilder::finish(std::string_view inline_bytes) {
  vk::FinishVkGraphBuffer(
      fbb, vk::CreateVkGraphDirect(fbb, "0", &chain, &values_, &inputs, &outputs, &constants));
  const std::string_view flatbuffer = finished(fbb);
  std::string blob(4, '\0');
  blob += "VH00";
  blob += scalar_text<uint16_t>(30);
  blob += scalar_text<uint32_t>(32);
  blob += scalar_text<uint32_t>(static_cast<uint32_t>(flatbuffer.size()));
  blob += scalar_text<uint32_t>(static_cast<uint32_t>(32 + align_up(flatbuffer.size(), 16)));
  blob += scalar_text<uint64_t>(inline_bytes.size());
  pad_to(blob, 16);
  blob += flatbuffer;
  pad_to(blob, 16);
  blob += inline_bytes;
  return blob;
}

uint32_t DataFileBuilder::add_segment(std::string_view content) {
  segments_.emplace_back(content);
  return static_cast<uint32_t>(segments_.size() - 1);
}

void DataFileBuilder::add_entry(const char* key, uint32_t segment,
                                const std::optional<LayoutSpec>& layout) {
  flatbuffers::Offset<ptd::TensorLayout> table;
  if (layout)
    table = ptd::CreateTensorLayoutDirect(fbb, layout->dtype, &layout->sizes, &layout->dim_order);
  entries.push_back(ptd::CreateNamedDataDirect(fbb, key, segment, table));
}

FileBytes DataFileBuilder::finish() {
  const Packed packed = pack(segments_);
  std::vector<flatbuffers::Offset<ptd::DataSegment>> table;
  table.reserve(segments_.size());
  for (size_t i = 0; i < segments_.size(); ++i) {
    table.push_back(ptd::CreateDataSegment(fbb, packed.offsets[i], segments_[i].size()));
  }
  if (segment_table) table = *segment_table;
  ptd::FinishFlatTensorBuffer(fbb,
                              ptd::CreateFlatTensorDirect(fbb, version, tables_ ? &table : nullptr,
                                                          tables_ ? &entries : nullptr));
  const std::string_view flatbuffer = finished(fbb);
  constexpr size_t kInserted = 48;
  std::string header = "FH01";
  header += scalar_text<uint32_t>(40);
  header += scalar_text<uint64_t>(kInserted);
  header += scalar_text<uint64_t>(flatbuffer.size());
  header += scalar_text<uint64_t>(align_up(kInserted + flatbuffer.size(), kSegmentAlignment));
  header += scalar_text<uint64_t>(packed.data.size());
  pad_to(header, kInserted);
  std::string file = with_header(flatbuffer, header);
  pad_to(file, kSegmentAlignment);
  return FileBytes(file + packed.data);
}

std::string fixture_path(std::string_view name) {
  return std::string(PTERYX_TEST_DATA "/fixtures/") + std::string(name);
}
FileBytes read_fixture(std::string_view name) { return FileBytes(file_text(fixture_path(name))); }

}  // namespace pteryx::program::testing

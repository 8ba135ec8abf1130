// The place of everything is known before the first blob is made, because all keys have one length;
// the two FlatBuffers that hold the keys are written last.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/program_writer.h"

#include <map>
#include <numeric>
#include <set>
#include <span>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/convert/sha256.h"
#include "pteryx/program/program_generated.h"

namespace pteryx::convert {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr uint64_t kAlignment = 128;
constexpr uint64_t kHeaderBytes = 32;  // inserted after the FlatBuffer's first 8
constexpr std::string_view kLeaf = R"({"type": null, "context": null, "children_spec": []})";
constexpr size_t kDelegateSegment = 1;  // 0 is the empty segment of constants
constexpr size_t kFirstBlob = 2;

// How results nested in Python, as PyTorch writes it: one alone, several in a list.
std::string output_tree(size_t results) {
  if (results == 1) return fmt::format("[1, {}]", kLeaf);
  std::vector<std::string_view> leaves(results, kLeaf);
  return fmt::format(
      R"([1, {{"type": "builtins.list", "context": "null", "children_spec": [{}]}}])",
      fmt::join(leaves, ", "));
}

pte::ScalarType scalar_type(DType t) {
  return t == DType::kI64 ? pte::ScalarType::LONG : pte::ScalarType::FLOAT;
}

}  // namespace

// The FlatBuffer of the program.
class ProgramWriter::Builder {
 public:
  Builder(const ProgramSpec& spec, std::span<const Segment> segments,
          std::span<const std::string> keys)
      : spec_(spec), segments_(segments), keys_(keys) {}

  std::string build() {
    std::vector<Offset<pte::ExecutionPlan>> plans = {forward()};
    for (const Constants& c : spec_.constants) plans.push_back(constants(c));
    std::vector<Offset<pte::DataSegment>> table;
    for (const Segment& s : segments_) {
      table.push_back(pte::CreateDataSegment(fbb_, s.offset, s.size));
    }
    const std::vector<uint64_t> none = {0};
    const auto constant_segment = pte::CreateSubsegmentOffsetsDirect(fbb_, 0, &none);
    const std::vector<Offset<pte::NamedData>> named = named_data();
    const std::vector<Offset<pte::Buffer>> buffers;
    const std::vector<Offset<pte::BackendDelegateInlineData>> inline_data;
    pte::FinishProgramBuffer(
        fbb_, pte::CreateProgramDirect(fbb_, 0, &plans, &buffers, &inline_data, &table,
                                       constant_segment, nullptr, &named));
    return {reinterpret_cast<const char*>(fbb_.GetBufferPointer()), fbb_.GetSize()};
  }

 private:
  Offset<pte::EValue> tensor(const Boundary& b, uint32_t buffer, uint64_t at) {
    const std::vector<int32_t> sizes(b.dims.begin(), b.dims.end());
    std::vector<uint8_t> order(sizes.size());
    std::iota(order.begin(), order.end(), uint8_t{0});
    Offset<pte::AllocationDetails> place;
    if (buffer != 0) {
      place = pte::CreateAllocationDetails(fbb_, buffer, static_cast<uint32_t>(at),
                                           static_cast<uint32_t>(at >> 32));
    }
    const auto t = pte::CreateTensorDirect(
        fbb_, scalar_type(b.type), 0, &sizes, &order, false, 0, place, 0,
        b.dynamic ? pte::TensorShapeDynamism::DYNAMIC_BOUND : pte::TensorShapeDynamism::STATIC);
    return pte::CreateEValue(fbb_, pte::KernelTypes::Tensor, t.Union());
  }

  Offset<pte::BackendDelegate> delegate() {
    const std::vector<uint8_t> yes = {1};
    const std::vector<uint8_t> no = {0};
    const std::vector<Offset<pte::CompileSpec>> specs = {
        pte::CreateCompileSpecDirect(fbb_, "require_dynamic_shapes", &yes),
        pte::CreateCompileSpecDirect(fbb_, "force_fp16", &no)};
    const auto where =
        pte::CreateBackendDelegateDataReference(fbb_, pte::DataLocation::SEGMENT, kDelegateSegment);
    return pte::CreateBackendDelegateDirect(fbb_, "VulkanBackend", where, &specs);
  }

  Offset<pte::ExecutionPlan> plan(const std::string& name, const std::string& input_tree,
                                  const std::vector<Offset<pte::EValue>>& values, size_t inputs,
                                  const std::vector<Offset<pte::Instruction>>& instructions,
                                  const std::vector<Offset<pte::BackendDelegate>>& delegates,
                                  const std::vector<int64_t>& buffers) {
    std::vector<int32_t> ids(values.size());
    std::iota(ids.begin(), ids.end(), 0);
    const auto split = ids.begin() + static_cast<ptrdiff_t>(inputs);
    const std::vector<int32_t> in(ids.begin(), split);
    const std::vector<int32_t> out(split, ids.end());
    const std::vector<int32_t> none;
    const std::vector<Offset<pte::Chain>> chains = {
        pte::CreateChainDirect(fbb_, &none, &none, &instructions)};
    const std::vector<Offset<pte::Operator>> operators;
    const auto tree = pte::CreateContainerMetadataDirect(fbb_, input_tree.c_str(),
                                                         output_tree(out.size()).c_str());
    return pte::CreateExecutionPlanDirect(fbb_, name.c_str(), tree, &values, &in, &out, &chains,
                                          &operators, &delegates, &buffers);
  }

  // Inputs are the caller's memory, outputs are planned one after another.
  Offset<pte::ExecutionPlan> forward() {
    std::vector<Offset<pte::EValue>> values;
    values.reserve(spec_.inputs.size() + spec_.outputs.size());
    for (const Boundary& b : spec_.inputs) values.push_back(tensor(b, 0, 0));
    uint64_t at = 0;
    for (const Boundary& b : spec_.outputs) {
      values.push_back(tensor(b, 1, at));
      at = align_up(at + static_cast<uint64_t>(numel(b.dims)) * size_bytes(b.type), 16);
    }
    std::vector<int32_t> args(values.size());
    std::iota(args.begin(), args.end(), 0);
    const auto call = pte::CreateDelegateCallDirect(fbb_, 0, &args);
    // Before the call: compilers differ in which argument they make first, which shows in the file.
    const auto to = delegate();
    const auto instruction =
        pte::CreateInstruction(fbb_, pte::InstructionArguments::DelegateCall, call.Union());
    return plan("forward", spec_.input_tree, values, spec_.inputs.size(), {instruction}, {to},
                {0, static_cast<int64_t>(at)});
  }

  Offset<pte::ExecutionPlan> constants(const Constants& c) {
    std::vector<Offset<pte::EValue>> values;
    for (const auto& v : c.values) {
      if (const auto* i = std::get_if<int64_t>(&v)) {
        values.push_back(
            pte::CreateEValue(fbb_, pte::KernelTypes::Int, pte::CreateInt(fbb_, *i).Union()));
      } else {
        values.push_back(pte::CreateEValue(fbb_, pte::KernelTypes::Bool,
                                           pte::CreateBool(fbb_, std::get<bool>(v)).Union()));
      }
    }
    return plan(c.name, "", values, 0, {}, {}, {0});
  }

  // Blobs that turned out equal have one key, and the first of them stands for all.
  std::vector<Offset<pte::NamedData>> named_data() {
    std::vector<Offset<pte::NamedData>> named;
    std::set<std::string> seen;
    auto segment = static_cast<uint32_t>(kFirstBlob);
    for (const std::string& key : keys_) {
      if (seen.insert(key).second) {
        named.push_back(pte::CreateNamedDataDirect(fbb_, key.c_str(), segment));
      }
      ++segment;
    }
    for (const Attachment& a : spec_.attachments) {
      named.push_back(pte::CreateNamedDataDirect(fbb_, a.key.c_str(), segment++));
    }
    return named;
  }

  const ProgramSpec& spec_;
  std::span<const Segment> segments_;
  std::span<const std::string> keys_;
  FlatBufferBuilder fbb_;
};

namespace {

template <typename T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof(T));
}

// The FlatBuffer with the extended header inside.
std::string with_header(const std::string& flatbuffer, uint64_t base, uint64_t segment_bytes) {
  uint32_t root = 0;
  std::memcpy(&root, flatbuffer.data(), sizeof(root));
  std::string out;
  put(out, static_cast<uint32_t>(root + kHeaderBytes));
  out += flatbuffer.substr(4, 4);
  out += "eh00";
  put(out, static_cast<uint32_t>(kHeaderBytes));
  put(out, static_cast<uint64_t>(flatbuffer.size() + kHeaderBytes));
  put(out, base);
  put(out, segment_bytes);
  out += flatbuffer.substr(8);
  return out;
}

Bytes bytes_of_text(const std::string& s) { return std::as_bytes(std::span(s)); }

}  // namespace

class ProgramPiece::BlobSink final : public Sink {
 public:
  BlobSink(ProgramWriter& writer, uint64_t offset) : writer_(writer), begin_(offset), at_(offset) {}
  Status write(Bytes bytes) override {
    hash_.add(bytes);
    PTERYX_TRY(writer_.output_.write_at(at_, bytes));
    at_ += bytes.size();
    writer_.written_ += bytes.size();
    return {};
  }
  uint64_t written() const { return at_ - begin_; }
  std::string key() { return hash_.hex(); }

 private:
  ProgramWriter& writer_;
  uint64_t begin_, at_;
  Sha256 hash_;
};

ProgramPiece::ProgramPiece(ProgramWriter& writer, size_t blob) : writer_(writer), blobs_{blob} {}

ProgramPiece::~ProgramPiece() = default;

Result<bool> ProgramPiece::advance() {
  if (next_ == blobs_.size()) return true;
  const size_t blob = blobs_[next_];
  const auto& segment = writer_.segments_[kFirstBlob + blob];
  if (sink_ == nullptr) sink_ = std::make_unique<BlobSink>(writer_, writer_.base_ + segment.offset);
  PTERYX_ASSIGN(const bool done, writer_.spec_.blobs[blob].write(*sink_));
  if (!done) return false;
  PTERYX_DCHECK(sink_->written() == segment.size);
  writer_.keys_[blob] = sink_->key();
  sink_.reset();
  return ++next_ == blobs_.size();
}

ProgramWriter::ProgramWriter(ProgramSpec spec, ProgramOutput& output)
    : spec_(std::move(spec)), output_(output) {
  // Keys that differ, as those to come most likely do.
  keys_.reserve(spec_.blobs.size());
  for (size_t i = 0; i < spec_.blobs.size(); ++i) keys_.push_back(fmt::format("{:064}", i));
  const auto place = [&](uint64_t size) {
    segments_.push_back({align_up(data_bytes_, kAlignment), size});
    data_bytes_ = segments_.back().offset + size;
  };
  place(spec_.graph.serialize(keys_).size());
  for (const Blob& b : spec_.blobs) place(b.size);
  for (const Attachment& a : spec_.attachments) place(a.bytes.size());
  base_ = align_up(Builder(spec_, segments_, keys_).build().size() + kHeaderBytes, kAlignment);

  std::map<const void*, ProgramPiece*> of_maker;
  for (size_t i = 0; i < spec_.blobs.size(); ++i) {
    const Blob& blob = spec_.blobs[i];
    ProgramPiece* known = nullptr;
    if (blob.maker != nullptr) known = of_maker[blob.maker];
    if (known == nullptr) {
      pieces_.push_back(std::make_unique<ProgramPiece>(*this, i));
      known = pieces_.back().get();
      if (blob.maker != nullptr) of_maker[blob.maker] = known;
    } else {
      known->blobs_.push_back(i);
    }
    known->size_ += blob.size;
  }
}

ProgramWriter::~ProgramWriter() = default;

std::vector<ProgramPiece*> ProgramWriter::pieces() {
  std::vector<ProgramPiece*> list;
  list.reserve(pieces_.size());
  for (const auto& piece : pieces_) list.push_back(piece.get());
  return list;
}

Status ProgramWriter::finish() {
  const auto write = [&](size_t segment, const std::string& bytes) {
    return output_.write_at(base_ + segments_[segment].offset, bytes_of_text(bytes));
  };
  for (size_t i = 0; i < spec_.attachments.size(); ++i) {
    PTERYX_TRY(write(kFirstBlob + spec_.blobs.size() + i, spec_.attachments[i].bytes));
  }
  PTERYX_TRY(write(kDelegateSegment, spec_.graph.serialize(keys_)));
  const std::string head =
      with_header(Builder(spec_, segments_, keys_).build(), base_, data_bytes_);
  PTERYX_DCHECK(head.size() <= base_);
  return output_.write_at(0, bytes_of_text(head));
}

}  // namespace pteryx::convert

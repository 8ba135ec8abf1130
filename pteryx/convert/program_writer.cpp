// The place of everything is known before the first blob is made, because all keys have one length;
// the two FlatBuffers that hold the keys are written last.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/program_writer.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/base/output_file.h"
#include "pteryx/convert/parallel.h"
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

struct Segment {
  uint64_t offset = 0, size = 0;
};

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

// The FlatBuffer of the program.
class Builder {
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
    return plan(
        "forward", spec_.input_tree, values, spec_.inputs.size(),
        {pte::CreateInstruction(fbb_, pte::InstructionArguments::DelegateCall, call.Union())},
        {delegate()}, {0, static_cast<int64_t>(at)});
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

// What all blobs write to.
struct Output {
  OutputFile& file;
  std::atomic<uint64_t> written = 0;
};

class BlobSink final : public Sink {
 public:
  BlobSink(Output& output, uint64_t offset, const Stopped& stopped)
      : output_(output), begin_(offset), at_(offset), stopped_(stopped) {}
  Status write(Bytes bytes) override {
    if (stopped_()) return {Code::kCancelled, "interrupted"};
    hash_.add(bytes);
    PTERYX_TRY(output_.file.write_at(at_, bytes));
    at_ += bytes.size();
    output_.written += bytes.size();
    return {};
  }
  uint64_t written() const { return at_ - begin_; }
  std::string key() { return hash_.hex(); }

 private:
  Output& output_;
  uint64_t begin_, at_;
  const Stopped& stopped_;
  Sha256 hash_;
};

// Blobs of one maker.
struct Batch {
  uint64_t bytes = 0;
  std::vector<size_t> blobs = {};
};

// The largest first, so that no thread begins the longest work when the others are done.
std::vector<Batch> batches_of(std::span<const Blob> blobs) {
  std::vector<Batch> batches;
  std::map<const void*, size_t> of_maker;
  for (size_t i = 0; i < blobs.size(); ++i) {
    size_t at = batches.size();
    if (blobs[i].maker != nullptr) at = of_maker.try_emplace(blobs[i].maker, at).first->second;
    if (at == batches.size()) batches.emplace_back();
    batches[at].bytes += blobs[i].size;
    batches[at].blobs.push_back(i);
  }
  std::ranges::stable_sort(batches, std::ranges::greater(), &Batch::bytes);
  return batches;
}

Bytes bytes_of_text(const std::string& s) { return std::as_bytes(std::span(s)); }

}  // namespace

Result<uint64_t> write_program(const ProgramSpec& spec, const std::string& path,
                               const Progress& progress, uint32_t threads) {
  // Keys that differ, as those to come most likely do.
  std::vector<std::string> keys;
  keys.reserve(spec.blobs.size());
  for (size_t i = 0; i < spec.blobs.size(); ++i) keys.push_back(fmt::format("{:064}", i));
  std::vector<Segment> segments = {{0, 0}};
  uint64_t end = 0;
  const auto place = [&](uint64_t size) {
    segments.push_back({align_up(end, kAlignment), size});
    end = segments.back().offset + size;
  };
  place(spec.graph.serialize(keys).size());
  for (const Blob& b : spec.blobs) place(b.size);
  for (const Attachment& a : spec.attachments) place(a.bytes.size());
  const uint64_t planned = Builder(spec, segments, keys).build().size() + kHeaderBytes;
  const uint64_t base = align_up(planned, kAlignment);

  PTERYX_ASSIGN(OutputFile file, OutputFile::create(path));
  Output output{file};
  const std::vector<Batch> batches = batches_of(spec.blobs);
  const auto write = [&](size_t batch, const Stopped& stopped) -> Status {
    for (const size_t i : batches[batch].blobs) {
      const Segment& s = segments[kFirstBlob + i];
      BlobSink sink(output, base + s.offset, stopped);
      PTERYX_TRY(spec.blobs[i].write(sink));
      PTERYX_DCHECK(sink.written() == s.size);
      keys[i] = sink.key();
    }
    return {};
  };
  const auto proceed = [&] { return !progress || progress(output.written, end); };
  PTERYX_TRY(run_parallel(batches.size(), threads_for(threads, end), write, proceed));
  for (size_t i = 0; i < spec.attachments.size(); ++i) {
    PTERYX_TRY(file.seek(base + segments[kFirstBlob + spec.blobs.size() + i].offset));
    PTERYX_TRY(file.write(bytes_of_text(spec.attachments[i].bytes)));
  }
  PTERYX_TRY(file.seek(base + segments[kDelegateSegment].offset));
  PTERYX_TRY(file.write(bytes_of_text(spec.graph.serialize(keys))));
  const std::string head = with_header(Builder(spec, segments, keys).build(), base, end);
  PTERYX_DCHECK(head.size() <= planned);
  PTERYX_TRY(file.seek(0));
  PTERYX_TRY(file.write(bytes_of_text(head)));
  PTERYX_TRY(file.commit());
  return base + end;
}

}  // namespace pteryx::convert

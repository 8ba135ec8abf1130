// A .pte program as plain records: parsed, range-checked, nothing interpreted yet. Needs no graph
// and no GPU. Tables are in memory; constants and blobs are ranges of the files they lie in, and
// stay there until somebody needs them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/dims.h"
#include "pteryx/base/dtype.h"
#include "pteryx/base/source.h"
#include "pteryx/base/status.h"

namespace pteryx::program {

// Blobs by name: the program's own and those of .ptd files.
struct TensorLayout {
  DType dtype = DType::kU8;
  Dims sizes;
  std::vector<uint8_t> dim_order;
};
struct NamedBlob {
  ByteRange data;
  std::optional<TensorLayout> layout;  // only .ptd entries have one
};
using NamedData = std::map<std::string, NamedBlob, std::less<>>;

// Where the exporter placed a tensor: byte offset inside planned buffer `buffer` (1-based).
struct Placement {
  uint32_t buffer = 0;
  uint64_t offset = 0;
};

struct TensorRecord {
  DType dtype = DType::kU8;
  Dims sizes;                      // exact, or the upper bound when dynamic
  std::vector<uint8_t> dim_order;  // outermost first, a permutation
  bool dynamic = false;
  std::optional<Placement> placement;
  // Constant bytes (no placement) or initial value of a mutable tensor (with placement); exactly
  // nbytes long.
  std::optional<ByteRange> data;
  // Why there can be no such tensor: "unsupported dtype complex64". Only its placement is known
  // then.
  std::string unsupported = {};
};

struct NullRecord {};
struct IntListRecord {
  std::vector<uint32_t> items;  // value indices of Int values, read when an instruction executes
};
struct DoubleListRecord {
  std::vector<double> items;
};
struct BoolListRecord {
  std::vector<bool> items;
};
struct TensorListRecord {
  std::vector<std::optional<uint32_t>> items;  // value indices; nullopt = None
};
using ValueRecord = std::variant<NullRecord, int64_t, bool, double, std::string, TensorRecord,
                                 IntListRecord, DoubleListRecord, BoolListRecord, TensorListRecord>;

struct KernelCall {
  uint32_t op = 0;  // index into MethodRecord::operators
  std::vector<uint32_t> args;
};
struct DelegateCall {
  uint32_t delegate = 0;
  std::vector<uint32_t> args;
};
struct MoveCall {
  uint32_t from = 0;
  uint32_t to = 0;
};
struct JumpFalseCall {
  uint32_t condition = 0;
  uint32_t destination = 0;  // index into MethodRecord::instructions, at most their number
};
struct FreeCall {
  uint32_t value = 0;
};
using Instruction = std::variant<KernelCall, DelegateCall, MoveCall, JumpFalseCall, FreeCall>;

struct CompileSpec {
  std::string key;
  Bytes value;
};
struct DelegateRecord {
  std::string id;  // "VulkanBackend"
  ByteRange blob;
  // Of a Vulkan blob: its beginning, and the graph if that says where it is, aligned to 8.
  Bytes head = {};
  Bytes tables = {};
  std::vector<CompileSpec> specs;
};

struct MethodRecord {
  std::string name;
  std::vector<ValueRecord> values;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  std::vector<Instruction> instructions;  // all chains, one after another; jump targets adjusted
  std::vector<std::string> operators;     // "aten::add.out"; overload only if not empty
  std::vector<DelegateRecord> delegates;
  std::vector<uint64_t> buffer_sizes;  // of planned buffers; entry 0 unused
};

inline constexpr std::string_view kVulkanDelegate = "VulkanBackend";

class Program {
 public:
  // Checks a program and its external data files, whose bytes must be there; see ProgramLoad for
  // those that come later. Errors: kIo, kInvalidProgram, kUnsupported.
  static Result<Program> read(SourcePtr program, std::vector<SourcePtr> data_files = {});
  // Over files, mapped.
  static Result<Program> open(const std::string& path,
                              std::span<const std::string> data_paths = {});
  // Over bytes in memory, which must outlive the Program.
  static Result<Program> parse(Bytes program, std::span<const Bytes> data_files = {});

  std::span<const MethodRecord> methods() const { return methods_; }
  const MethodRecord* find(std::string_view name) const;
  const NamedData& named_data() const { return named_data_; }
  // What ranges refer to: the program, then its data files.
  std::span<const SourcePtr> sources() const { return sources_; }
  uint64_t file_bytes() const;

 private:
  friend class ProgramLoad;

  std::vector<SourcePtr> sources_;
  std::vector<MethodRecord> methods_;
  NamedData named_data_;
  std::deque<FetchedBytes> tables_;  // records point into these
};

}  // namespace pteryx::program

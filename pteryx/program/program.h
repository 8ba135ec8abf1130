// A .pte program as plain records: parsed, range-checked, nothing interpreted yet. Needs no graph
// and no GPU. Everything that a record points at (constants, blobs) lies inside the files, which
// the Program keeps mapped.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
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
#include "pteryx/base/status.h"

namespace pteryx::program {

// Blobs by name: the program's own and those of .ptd files.
struct TensorLayout {
  DType dtype = DType::kU8;
  Dims sizes;
  std::vector<uint8_t> dim_order;
};
struct NamedBlob {
  Bytes bytes;
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
  std::optional<Bytes> data;
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
  Bytes blob;
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

class Program {
 public:
  // Maps and checks a program and its external data files. Errors: kIo, kInvalidProgram,
  // kUnsupported.
  static Result<Program> open(const std::string& path,
                              std::span<const std::string> data_paths = {});
  // The same over bytes in memory, which must outlive the Program and start at an address aligned
  // to 16.
  static Result<Program> parse(Bytes program, std::span<const Bytes> data_files = {});

  std::span<const MethodRecord> methods() const { return methods_; }
  const MethodRecord* find(std::string_view name) const;
  const NamedData& named_data() const { return named_data_; }
  uint64_t file_bytes() const { return file_bytes_; }

 private:
  std::vector<MethodRecord> methods_;
  NamedData named_data_;
  uint64_t file_bytes_ = 0;
  std::vector<std::shared_ptr<const void>> keep_alive_;  // mapped files
};

// Checks a .ptd file and adds its entries to `into`. `what` names the file in messages.
Status read_data_file(Bytes file, std::string_view what, NamedData& into);

}  // namespace pteryx::program

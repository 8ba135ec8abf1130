// One validated, immutable graph for a whole method: kernel calls and delegate blobs inlined into
// one chain of nodes over one table of values. Needs no GPU.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pteryx/base/dims.h"
#include "pteryx/base/dtype.h"
#include "pteryx/base/source.h"
#include "pteryx/base/status.h"

namespace pteryx::graph {

enum class ValueId : uint32_t {};
inline constexpr ValueId kNoValue{std::numeric_limits<uint32_t>::max()};
constexpr uint32_t index(ValueId id) { return static_cast<uint32_t>(id); }

// Where state is that several methods of a program see: a byte of one of the planned memories.
struct SharedPlace {
  uint32_t memory = 0;
  uint64_t offset = 0;
  friend auto operator<=>(const SharedPlace&, const SharedPlace&) = default;
};

struct Null {};
// Contents are dense row-major in the live dims, whatever order the file kept them in.
struct Tensor {
  DType dtype = DType::kF32;
  Dims max;  // upper bound of every dim; sizes the memory
  // Of a constant, or of state at first: where its bytes are, one range behind the other.
  std::vector<ByteRange> data;
  std::vector<uint8_t> dim_order;    // of `data`; empty = row-major
  std::optional<DType> stored = {};  // type of `data` where it is another; converted when read
  bool state = false;                // keeps its contents between runs
  std::optional<SharedPlace> shared = {};  // of state that is not this method's alone
  bool dynamic = false;                    // a method input whose live dims may be smaller than max
  std::string unsupported = {};  // why there can be no such tensor; only its uses are known then

  bool has_data() const { return !data.empty(); }
  bool is_constant() const { return has_data() && !state; }
};
enum class ScalarKind : uint8_t { kInt, kBool, kDouble };
// A scalar computed while running: symbolic sizes, positions, conditions.
struct LiveScalar {
  ScalarKind kind = ScalarKind::kInt;
  int64_t initial_int = 0;  // before the first run; keeps its value between runs
  double initial_double = 0;
  uint32_t slot = 0;  // of an int: its place where shaders read live scalars; see number_scalars
};
struct IntList {
  std::vector<int64_t> items;
};
struct DoubleList {
  std::vector<double> items;
};
struct BoolList {
  std::vector<bool> items;
};
struct ValueList {
  std::vector<ValueId> items;  // kNoValue = None
};
using Value = std::variant<Null, int64_t, double, bool, std::string, Tensor, LiveScalar, IntList,
                           DoubleList, BoolList, ValueList>;
std::string_view kind_name(const Value& v);

// What graph/ must know of an operator; ops/ supplies it.
struct OpInfo {
  std::string_view name;  // canonical spelling
  std::span<const uint8_t>
      factory;  // canonical positions that this spelling leaves out (dtype, layout, device, pin)
  uint64_t mutated = 0;  // bit i: argument i is written in place
  uint64_t index = 0;    // bit i: argument i may be i64 where the graph computes in i32
  uint64_t cache = 0;    // bit i: argument i is a KV cache, of any float type
  uint32_t op = 0;       // index into the operator table

  // Of the argument at a position of any size: files may have more than there are bits.
  bool mutates(size_t arg) const { return has(mutated, arg); }
  bool narrows(size_t arg) const { return has(index, arg); }
  bool takes_cache(size_t arg) const { return has(cache, arg); }

 private:
  static bool has(uint64_t bits, size_t arg) { return arg < 64 && ((bits >> arg) & 1U) != 0; }
};
class OpLookup {
 public:
  virtual ~OpLookup() = default;
  virtual const OpInfo* find(std::string_view spelling) const = 0;
};

struct Node {
  enum class Kind : uint8_t { kOp, kJumpFalse };
  Kind kind = Kind::kOp;
  const OpInfo* op =
      nullptr;  // null: an operator nobody knows, reported at load with all the others
  std::string_view spelling;  // as in the file; points into the graph
  std::vector<ValueId> args;  // canonical order; the result is last. kJumpFalse: the condition
  uint32_t target = 0;        // kJumpFalse: node to go on with when the condition is false
  int32_t delegate = -1;      // delegate of the method it came from, or -1
  uint32_t call = 0;          // its number there
};

// Internal operators that inlining inserts.
inline constexpr std::string_view kCopyOp =
    "pteryx.copy";  // [src, dst]; same dims, dtype converted
inline constexpr std::string_view kViewOp = "pteryx.view";  // [src, dst]; same bytes, dims of dst
inline constexpr std::string_view kItemOp = "pteryx.item";  // [one-element tensor, scalar]
inline constexpr std::string_view kScalarMoveOp = "pteryx.move";  // [scalar, scalar]

struct Graph {
  Graph() = default;
  Graph(Graph&&) = default;  // NOLINT(performance-noexcept-move-constructor): std::deque's is not
  Graph& operator=(Graph&&) noexcept = default;

  std::string method;
  std::vector<Value> values;
  std::vector<std::string> labels;  // "value 7", "delegate 0 value 12": how messages name a value
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::deque<std::string> spellings;  // distinct operator names; nodes point here
  bool has_jumps = false;

  const Value& operator[](ValueId id) const { return values[index(id)]; }
  const Tensor* tensor(ValueId id) const { return std::get_if<Tensor>(&values[index(id)]); }
  std::string_view label(ValueId id) const { return labels[index(id)]; }
  ValueId add(Value v, std::string label);
};

// Gives every live int a slot of its own, from 0 on; returns how many there are.
uint32_t number_scalars(Graph& g);

// "aten.add.Tensor (delegate 0, node 12)": how messages name a node.
std::string describe(const Graph& g, const Node& n);

}  // namespace pteryx::graph

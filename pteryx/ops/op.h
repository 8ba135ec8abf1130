// All that an op author sees: how an op states its schema (OpDef, arg.h), what it may ask of a call
// (Node), where it puts its GPU work (Plan) and its host tensors (Host).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/dims.h"
#include "pteryx/base/dtype.h"
#include "pteryx/base/precision.h"
#include "pteryx/base/status.h"
#include "pteryx/cpu/arena.h"
#include "pteryx/gpu/caps.h"
#include "pteryx/gpu/grid.h"
#include "pteryx/graph/graph.h"
#include "pteryx/ops/arg.h"
#include "pteryx/ops/cpu_kernel.h"
#include "pteryx/ops/kernel/expand.h"
#include "pteryx/ops/shader.h"

namespace pteryx::cpu {
class Pool;
}  // namespace pteryx::cpu

namespace pteryx::ops {

using graph::ValueId;

// ---------------------------------------------------------------- live values

// A tensor at its live size.
struct Tensor {
  ValueId id = graph::kNoValue;
  DType dtype = DType::kF32;
  Dims dims;

  size_t rank() const { return dims.rank(); }
  int64_t numel() const { return pteryx::numel(dims); }
  // dim(-1) is the last one; a rank-0 tensor has dim(-1) == 1.
  int64_t dim(int64_t i) const;
  int64_t rows() const;  // product of all dims but the last; 1 for rank 0
};

struct Scalar {
  graph::ScalarKind kind = graph::ScalarKind::kInt;
  int64_t i = 0;
  double d = 0;
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

// Live dims and scalars of every value, indexed by ValueId.
struct Live {
  std::vector<Dims> dims;
  std::vector<Scalar> scalars;
};

// What a plan read of the live scalars: it holds as long as these read the same.
struct ScalarReads {
  struct Value {
    ValueId id = graph::kNoValue;
    int64_t plus = 0;
    int64_t step = 0;  // 0: the value itself, else Node::bucket
    friend bool operator==(const Value&, const Value&) = default;
  };
  std::vector<Value> values;   // by the plan, on the host
  std::vector<ValueId> slots;  // by its shaders, each run
};
// v rounded up to step * 2^k.
int64_t bucket_of(int64_t v, int64_t step);

// An int for a shader, which reads it with live(): a literal, or a slot of the live scalars, so
// that one plan serves every value. A literal is not negative.
struct LiveInt {
  static constexpr uint32_t kSlot = 0x80000000U;
  uint32_t word = 0;
  bool is_slot() const { return (word & kSlot) != 0; }
};

struct OpDef;

// One call of an op: its arguments at their live size. Kinds, types and ranks were checked against
// the schema, so accessors do not fail except where they say so.
class Node {
 public:
  // `reads` collects what is read of the live scalars.
  Node(const graph::Graph& g, const graph::Node& n, const OpDef& def, const Live& live,
       ScalarReads* reads = nullptr)
      : graph_(g), node_(n), def_(def), live_(live), reads_(reads) {}

  bool has(size_t arg) const;  // not None
  Tensor in(size_t arg) const { return tensor(node_.args[arg]); }
  std::vector<std::optional<Tensor>> list(size_t arg) const;
  size_t list_size(size_t arg) const;
  std::optional<Tensor> list_item(size_t arg, size_t i) const;
  Tensor out(size_t i = 0) const;  // i-th result tensor
  size_t out_count() const;
  bool has_out(size_t i) const;  // a list of results may leave members out

  double number(size_t arg) const;                  // int, float, bool or live scalar
  double number_or(size_t arg, double none) const;  // none when None
  Scalar scalar(size_t arg) const;                  // the same with its kind
  bool number_is_int(size_t arg) const;             // an int or bool, not a float
  Result<int64_t> integer(size_t arg) const;        // error if a float that is not integral
  Result<int64_t> integer_or(size_t arg, int64_t none) const;
  bool flag(size_t arg) const;
  std::string_view text(size_t arg) const;  // "" when None
  // At most kMaxRank entries; error otherwise. None gives an empty list.
  Result<Dims> ints(size_t arg) const;
  std::vector<double> numbers(size_t arg) const;
  Result<size_t> dim(size_t arg,
                     size_t rank) const;  // a dim argument, negative counted from the end

  // Plans read an int that may change with every run, such as a position, in one of two ways that
  // leave the plan good for other values: by a shader, or rounded up for grids that grow with it.
  bool is_live(size_t arg) const;  // a scalar computed while running
  LiveInt live(size_t arg) const;
  int64_t bucket(size_t arg, int64_t plus, int64_t step) const;  // bucket_of(value + plus, step)

  const OpDef& def() const { return def_; }
  const graph::Node& node() const { return node_; }
  const graph::Graph& graph() const { return graph_; }
  const Live& live() const { return live_; }
  Tensor tensor(ValueId id) const;
  Dims max_dims(ValueId id) const;  // from the file
  bool is_constant(const Tensor& t) const;
  ValueId out_id(size_t i = 0) const;

  // "aten.add.Tensor (node 12): x (value 7) shape: expected [2048], got [1024]"
  Status fail(Code code, std::string_view text) const;
  // Sizes and values that differ from run to run are the caller's (kInvalidArgument); at load,
  // where all of them are the file's, the session says kInvalidProgram instead.
  Status mismatch(size_t arg, std::string_view what, std::string_view expected,
                  std::string_view got) const;
  Status expect(size_t arg, std::string_view what, const Dims& expected, const Dims& got) const;
  // The same for what is written in the file alone: types, ranks, modes, lengths of lists
  // (kInvalidProgram).
  Status malformed(size_t arg, std::string_view what, std::string_view expected,
                   std::string_view got) const;
  Status unsupported(std::string_view text) const { return fail(Code::kUnsupported, text); }

 private:
  std::optional<Scalar> read(ValueId id) const;
  std::string difference(size_t arg, std::string_view what, std::string_view expected,
                         std::string_view got) const;

  const graph::Graph& graph_;
  const graph::Node& node_;
  const OpDef& def_;
  const Live& live_;
  ScalarReads* reads_;
};

// Where shape() puts its answer. Results start as the file's dims, untouched results keep them.
class Shapes {
 public:
  Shapes(const Node& n, Live& next) : node_(n), next_(next) {}
  // Compares dims with what `next` has instead of writing them; scalars are written.
  Shapes(const Node& n, Live& next, bool& same) : node_(n), next_(next), same_(&same) {}
  // Fails if the dims exceed what the file allows for that result (kInvalidArgument).
  Status set(size_t i, const Dims& dims);
  Status set(const Dims& dims) { return set(0, dims); }
  void set_scalar(Scalar s);
  void set_int(int64_t v) { set_scalar({graph::ScalarKind::kInt, v, static_cast<double>(v)}); }

 private:
  const Node& node_;
  Live& next_;
  bool* same_ = nullptr;
};

// ---------------------------------------------------------------- GPU work

struct Bind {
  std::string_view name;  // in the kernel
  Tensor tensor;
};

struct DispatchDesc {
  const Shader* shader = nullptr;
  Options options = {};           // of the kernel; the types of its tensors are added
  std::string_view variant = {};  // for the label: "add"
  std::vector<Bind> bind;         // every tensor that the kernel has
  Bytes params = {};              // the kernel's Params, binding 0
  // Of the params, those that the kernel reads with live().
  std::vector<LiveInt> live = {};
  gpu::Grid grid;
  double flops = 0;  // that it computes, for profiles; 0: work.h tells
};

// What a plan is made for: capabilities, routes forced for tests, and how exact matrix
// products must be.
struct PlanContext {
  gpu::Caps caps;
  std::vector<std::pair<std::string, std::string>> forced_routes = {};  // family, route
  Precision precision = Precision::kF32;
};

// One GPU dispatch, ready to be lowered: everything is data.
struct PlannedBinding {
  enum class Kind : uint8_t {
    kValue,
    kScratch,
    kCounted,
    kConstant,
    kScalars,
    kFaults,
    kStaging,  // live scalars and small inputs, to be written
    kRule,     // how these move from a run to the next: sample/common/feed.wgsl
  } kind = Kind::kValue;
  ValueId value = graph::kNoValue;
  uint32_t scratch = 0;   // index into Plan::scratch_bytes
  uint32_t constant = 0;  // index into Plan::constants
  bool written = false;
};
struct PlannedDispatch {
  std::string label;
  std::string code;
  std::vector<PlannedBinding> bindings;  // binding 1, 2, ...
  std::vector<std::byte> params;
  gpu::Grid grid;
  bool f16 = false;
  bool subgroups = false;
  bool subgroup_matrix = false;
  double flops = 0;
};

// Of the tensors of kernels, those that no node has, by their names.
std::optional<PlannedBinding::Kind> session_binding(std::string_view tensor);

// A constant of the file in another layout, made on the GPU before its first use.
struct PlannedConstant {
  ValueId source = graph::kNoValue;
  std::string layout;  // with the source, what it is known by
  uint64_t size_bytes = 0;
  PlannedDispatch make;  // binding 1: the source, 2: the result
};

// Words at the start of a counted temporary that are 0.
inline constexpr int64_t kCounters = 512;

class Plan {
 public:
  // `fault`: the slot where the node reports indices outside their tensor; none: its indices were
  // checked before.
  explicit Plan(const PlanContext& context, std::optional<uint32_t> fault = {})
      : context_(context), fault_(fault) {}

  const gpu::Caps& caps() const { return context_.caps; }
  const PlanContext& context() const { return context_; }
  uint32_t fault() const { return fault_.value_or(0); }

  // Records a dispatch. An empty grid (nothing to do) records nothing.
  Status dispatch(const Node& n, DispatchDesc desc);
  // What stands for the node's last dispatch in runs that feed the next one: it prepares that, too,
  // which finds done what a first dispatch would write, if this writes it.
  Status feed(const Node& n, DispatchDesc desc);
  // A temporary of this node's; bind it like a tensor.
  Tensor scratch(DType dtype, const Dims& dims);
  // The same, of kCounters counters and `words` more words, for workgroups that count themselves.
  // The counters are 0 before every dispatch, and the node leaves them so; one to a node.
  Tensor counted_scratch(int64_t words);
  // A constant in another layout; bind it like a tensor. It is made once for all who ask for the
  // same layout of the same bytes, so `layout` names everything the result depends on. The shader
  // of `make` reads array<u32> `source` and writes array<u32> `y`.
  Result<Tensor> relaid(const Node& n, const Tensor& source, std::string layout, DType dtype,
                        const Dims& dims, DispatchDesc make);

  std::vector<PlannedDispatch> dispatches;
  std::optional<PlannedDispatch> feeding;
  std::vector<PlannedConstant> constants;
  std::vector<uint64_t> scratch_bytes;
  uint64_t counted_bytes = 0;  // of the counted temporary; 0: there is none

 private:
  PlannedBinding binding(const Tensor& t) const;
  Status dispatch_kernel(const Node& n, const DispatchDesc& desc, const Kernel& kernel);

  const PlanContext& context_;
  std::optional<uint32_t> fault_;
};

// Grids. Workgroups of kWorkgroup invocations along a flat index; shaders use
// flat_id()/flat_group().
inline constexpr uint32_t kWorkgroup = 64;
inline gpu::Grid per_element(int64_t n, const gpu::Caps& caps) {
  return gpu::flat_grid(div_up(static_cast<uint64_t>(n), kWorkgroup), caps);
}
// Elementwise kernels that loop over `per_invocation` words of common/index.wgsl.
inline gpu::Grid per_word(int64_t n, const gpu::Caps& caps) {
  return gpu::flat_grid(div_up(static_cast<uint64_t>(n), 1024), caps);
}
inline gpu::Grid per_group(int64_t n, const gpu::Caps& caps) {
  return gpu::flat_grid(static_cast<uint64_t>(n), caps);
}
// Number of u32 words of n elements of type t: the work items of kernels that write words.
int64_t words(int64_t n, DType t);

inline uint32_t u32(int64_t v) { return static_cast<uint32_t>(v); }

// Shape descriptors for shaders. `view` strides broadcast: a dim of size 1 against a larger one has
// stride 0.
TensorMeta meta(const Dims& dims);
TensorMeta broadcast_meta(const Dims& dims, const Dims& to);
TensorMeta strided_meta(const Dims& dims, const Dims& strides);

// Routes of a family: of those that fit, the first that suits is taken (failing that, the first),
// unless LoadOptions::Testing::routes names another that fits.
struct Route {
  std::string_view name;
  bool (*fits)(const Node&, const gpu::Caps&) = nullptr;  // can run; null: always
  Status (*plan)(const Node&, Plan&) = nullptr;
  bool (*suits)(const Node&,
                const gpu::Caps&) = nullptr;  // a good choice at these sizes; null: always
  Precision precision = Precision::kF32;      // kF16: only for callers who allow that
};
// Whether a route can run a node at all: what it needs of the device, the sizes and the caller.
bool route_fits(const Route& r, const Node& n, const PlanContext& context);
// The `.plan` of an OpDef that has `.family` and `.routes`.
Status plan_by_route(const Node& n, Plan& p);

// ---------------------------------------------------------------- host work

// A dense row-major tensor in host memory.
struct HostTensor {
  DType dtype = DType::kF32;
  Dims dims;
  std::byte* data = nullptr;

  int64_t numel() const { return pteryx::numel(dims); }
  double number(int64_t i) const;       // any type as double
  int64_t integer(int64_t i) const;     // any type as int64; floats truncate
  void put(int64_t i, double v) const;  // rounds to the type; to bool: v != 0; to ints: truncates
  void put_integer(int64_t i, int64_t v) const;
  void put_scalar(int64_t i, const Scalar& v) const;
  // Element i becomes element j of `from`: the same bits, converted only where the types differ.
  void copy(int64_t i, const HostTensor& from, int64_t j) const;
};
class Host {
 public:
  virtual ~Host() = default;
  virtual HostTensor host(ValueId id) const = 0;  // read-only unless a result or mutated
  // A constant that lies in several places, one behind the other; empty: in the one of host().
  virtual std::span<const Bytes> parts(ValueId /*id*/) const { return {}; }
};

// What fast CPU kernels work with.
struct CpuContext {
  cpu::Pool& pool;
  cpu::Arena& memory;  // of this call
  Precision precision = Precision::kF32;
  // The kernel is only asked how much memory it takes: it takes it as always, but touches neither
  // that nor the data of tensors.
  bool dry_run() const { return memory.counts_only(); }
};

// ---------------------------------------------------------------- the op

enum class OpClass : uint8_t {
  kCompute,
  kView,    // same bytes as argument 0 under other dims; costs nothing where memory allows
  kScalar,  // computes host scalars in shape(); nothing else to run
  kItem,    // reads a scalar out of argument 0 in item(), before shapes are known
};

struct OpDef {
  std::string_view name;  // "aten.add.Tensor"
  std::span<const std::string_view> spellings =
      {};  // "aten::add.out"; those with "::" leave factory args out
  std::span<const Arg> args;
  Status (*shape)(const Node&, Shapes&) = nullptr;
  Status (*plan)(const Node&, Plan&) = nullptr;  // null: CPU only
  bool (*gpu)(const Node&) = nullptr;            // further conditions for the GPU; null: none
  CpuKernel<Status (*)(const Node&, const Host&)> cpu;  // null: GPU only
  // The same with all that a processor has; false: not for this call, and nothing was done.
  CpuKernel<Result<bool> (*)(const Node&, const Host&, CpuContext&)> fast;
  Status (*item)(const Node&, const HostTensor& x, Shapes&) = nullptr;  // OpClass::kItem only
  OpClass op_class = OpClass::kCompute;
  bool casts = false;  // the result has the elements of argument 0, perhaps as another type
  std::string_view family = {};  // of routes: "family:route" names one
  std::span<const Route> routes = {};
  const void* row = nullptr;  // the family's own data
};

// Common shape rules.
Status shape_like_first(const Node& n, Shapes& s);  // result = dims of argument 0

}  // namespace pteryx::ops

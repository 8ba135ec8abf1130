// Plan: turns a dispatch description into an expanded kernel with its bindings.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>

#include "pteryx/ops/kernel/library.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/shaders/pack.h"

namespace pteryx::ops {
namespace {

constexpr uint32_t lanes(DType t) { return static_cast<uint32_t>(4 / size_bytes(t)); }

// i64 is held as i32 on the GPU; everything else as it is.
constexpr DType gpu_type(DType t) { return t == DType::kI64 ? DType::kI32 : t; }

}  // namespace

int64_t words(int64_t n, DType t) {
  return static_cast<int64_t>(div_up(static_cast<uint64_t>(n), lanes(gpu_type(t))));
}

// Scratch tensors have ids counted down from the top of the id space, derived constants from its
// middle; the counted temporary has the one above.
constexpr uint32_t kTop = graph::index(graph::kNoValue) - 1;
constexpr uint32_t kMiddle = kTop / 2;
constexpr uint32_t kCountedId = kMiddle + 1;

PlannedBinding Plan::binding(const Tensor& t) const {
  PlannedBinding pb;
  const uint32_t id = graph::index(t.id);
  if (kTop - id < scratch_bytes.size()) {
    pb.kind = PlannedBinding::Kind::kScratch;
    pb.scratch = kTop - id;
  } else if (id == kCountedId) {
    pb.kind = PlannedBinding::Kind::kCounted;
  } else if (id <= kMiddle && kMiddle - id < constants.size()) {
    pb.kind = PlannedBinding::Kind::kConstant;
    pb.constant = kMiddle - id;
  } else {
    pb.value = t.id;
  }
  return pb;
}

Result<Tensor> Plan::relaid(const Node& n, const Tensor& source, std::string layout, DType dtype,
                            const Dims& dims, DispatchDesc make) {
  if (source.numel() == 0) return n.unsupported("a constant without elements has no layout");
  const auto k = static_cast<uint32_t>(constants.size());
  const Tensor y{ValueId{kMiddle - k}, dtype, dims};
  constants.push_back(
      {.source = source.id,
       .layout = std::move(layout),
       .size_bytes = align_up(static_cast<uint64_t>(y.numel()) * size_bytes(dtype), 16),
       .make = {}});
  make.bind = {{"source", source}, {"y", y}};
  PTERYX_TRY(dispatch(n, std::move(make)));
  constants[k].make = std::move(dispatches.back());
  dispatches.pop_back();
  return y;
}

Tensor Plan::scratch(DType dtype, const Dims& dims) {
  const auto k = static_cast<uint32_t>(scratch_bytes.size());
  scratch_bytes.push_back(align_up(static_cast<uint64_t>(numel(dims)) * size_bytes(dtype), 4));
  return {ValueId{kTop - k}, dtype, dims};
}

Tensor Plan::counted_scratch(int64_t words) {
  const Tensor t{ValueId{kCountedId}, DType::kI32, {kCounters + words}};
  counted_bytes = static_cast<uint64_t>(t.numel()) * size_bytes(t.dtype);
  return t;
}

namespace {

// Element stores of sub-word types go through a scratch of full words and are packed afterwards.
struct Repack {
  Tensor from;
  Tensor to;
};
Tensor widened(Plan& p, const Tensor& t, std::vector<Repack>& repacks) {
  if (size_bytes(gpu_type(t.dtype)) >= 4) return t;
  const Tensor wide = p.scratch(is_float(t.dtype) ? DType::kF32 : DType::kI32, t.dims);
  repacks.push_back({wide, t});
  return wide;
}
Status pack(const Node& n, Plan& p, const std::vector<Repack>& repacks) {
  for (const Repack& r : repacks) {
    const shaders::PackParams params{.n = u32(r.to.numel())};
    PTERYX_TRY(p.dispatch(n, {.shader = &shaders::pack,
                              .bind = {{"x", r.from}, {"y", r.to}},
                              .params = bytes_of(params),
                              .grid = per_element(words(r.to.numel(), r.to.dtype), p.caps())}));
  }
  return {};
}

// Those that files may declare whatever they compute: the types of tensors, and what the node is
// told besides its params.
void add_options(const DispatchDesc& desc, bool reports, Options& to) {
  for (const Bind& b : desc.bind) {
    std::string option = std::string(b.name) + "_type";
    if (has_option(desc.shader->file, option))
      to.set(std::move(option), std::string(name(gpu_type(b.tensor.dtype))));
  }
  const bool slots = std::ranges::any_of(desc.live, &LiveInt::is_slot);
  if (has_option(desc.shader->file, "live_slots")) to.set("live_slots", slots ? 1 : 0);
  if (has_option(desc.shader->file, "reports")) to.set("reports", reports ? 1 : 0);
}

}  // namespace

Status Plan::feed(const Node& n, DispatchDesc desc) {
  PTERYX_TRY(dispatch(n, std::move(desc)));
  feeding = std::move(dispatches.back());
  dispatches.pop_back();
  return {};
}

std::optional<PlannedBinding::Kind> session_binding(std::string_view tensor) {
  using Kind = PlannedBinding::Kind;
  if (tensor == "live_scalars") return Kind::kScalars;
  if (tensor == "faults") return Kind::kFaults;
  if (tensor == "staging") return Kind::kStaging;
  if (tensor == "feed_rule") return Kind::kRule;
  return std::nullopt;
}

// A kernel whose file says what it binds.
Status Plan::dispatch_kernel(const Node& n, const DispatchDesc& desc, const Kernel& kernel) {
  PlannedDispatch d;
  d.label = std::string(desc.shader->name);
  std::vector<Repack> repacks;
  size_t used = 0;
  for (const KernelTensor& t : kernel.tensors) {
    if (const auto kind = session_binding(t.name)) {
      d.bindings.push_back({.kind = *kind, .written = t.is_written()});
      continue;
    }
    const auto b = std::ranges::find(desc.bind, t.name, &Bind::name);
    if (b == desc.bind.end())
      return n.fail(Code::kInvalidProgram,
                    fmt::format("{}: nothing is bound to {}", d.label, t.name));
    ++used;
    const bool elements = t.access == KernelTensor::Access::kElements;
    const Tensor tensor = elements ? widened(*this, b->tensor, repacks) : b->tensor;
    PlannedBinding bound = binding(tensor);
    bound.written = t.is_written();
    d.bindings.push_back(bound);
    d.label += fmt::format("{}{}", used == 1 ? "/" : ",", name(gpu_type(tensor.dtype)));
  }
  if (used != desc.bind.size()) {
    return n.fail(Code::kInvalidProgram, fmt::format("{}: {} tensors are bound, it has {}", d.label,
                                                     desc.bind.size(), used));
  }
  if (!desc.variant.empty()) d.label += fmt::format("/{}", desc.variant);
  d.code = kernel.code;
  d.params.assign(desc.params.begin(), desc.params.end());
  d.grid = desc.grid;
  d.f16 = kernel.f16;
  d.subgroups = kernel.subgroups;
  d.subgroup_matrix = kernel.subgroup_matrix;
  d.flops = desc.flops;
  dispatches.push_back(std::move(d));
  return pack(n, *this, repacks);
}

Status Plan::dispatch(const Node& n, DispatchDesc desc) {
  if (desc.grid.x == 0 || desc.grid.y == 0 || desc.grid.z == 0) return {};
  const uint32_t limit = caps().max_workgroups_per_dim;
  if (desc.grid.x > limit || desc.grid.y > limit || desc.grid.z > limit) {
    return n.unsupported(
        fmt::format("grid {}x{}x{} exceeds the device's {} workgroups per dimension", desc.grid.x,
                    desc.grid.y, desc.grid.z, limit));
  }
  for (const Bind& b : desc.bind) {
    if (static_cast<uint64_t>(b.tensor.numel()) <= std::numeric_limits<uint32_t>::max()) continue;
    return n.unsupported(
        fmt::format("{} has {} elements, more than 2^32 - 1", b.name, b.tensor.numel()));
  }
  Options options = std::move(desc.options);
  add_options(desc, fault_.has_value(), options);
  const auto kernel = find_kernel(desc.shader->file, options);
  if (!kernel.ok()) return n.fail(Code::kInvalidProgram, kernel.status().message());
  return dispatch_kernel(n, desc, **kernel);
}

TensorMeta strided_meta(const Dims& dims, const Dims& strides) {
  TensorMeta m;
  m.dims.fill(1);
  for (size_t i = 0; i < dims.rank(); ++i) {
    const size_t at = kMaxRank - dims.rank() + i;
    m.dims[at] = u32(dims[i]);
    m.strides[at] = u32(strides[i]);
  }
  return m;
}

TensorMeta meta(const Dims& dims) { return strided_meta(dims, contiguous_strides(dims)); }

TensorMeta broadcast_meta(const Dims& dims, const Dims& to) {
  const Dims own = contiguous_strides(dims);
  Dims strides = Dims::filled(to.rank(), 0);
  for (size_t i = 0; i < dims.rank(); ++i) {
    if (dims[i] != 1) strides[to.rank() - dims.rank() + i] = own[i];
  }
  return strided_meta(to, strides);
}

bool route_fits(const Route& r, const Node& n, const PlanContext& context) {
  if (r.precision == Precision::kF16 && context.precision != Precision::kF16) return false;
  return r.fits == nullptr || r.fits(n, context.caps);
}

Status plan_by_route(const Node& n, Plan& p) {
  const Route* first = nullptr;
  const Route* chosen = nullptr;
  for (const Route& r : n.def().routes) {
    if (!route_fits(r, n, p.context())) continue;
    for (const auto& [forced_family, forced] : p.context().forced_routes) {
      if (forced_family == n.def().family && forced == r.name) return r.plan(n, p);
    }
    if (first == nullptr) first = &r;
    if (chosen == nullptr && (r.suits == nullptr || r.suits(n, p.caps()))) chosen = &r;
  }
  if (chosen == nullptr) chosen = first;
  if (chosen == nullptr)
    return n.unsupported(fmt::format("no {} route fits this device", n.def().family));
  return chosen->plan(n, p);
}

}  // namespace pteryx::ops

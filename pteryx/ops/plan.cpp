// Plan: turns a dispatch description into complete WGSL with its bindings. The only place that
// writes tensor declarations and accessors, so every kernel reads and writes every element type the
// same way.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>

#include "pteryx/ops/kernel/library.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/shaders/pack.h"

namespace pteryx::ops {
namespace {

constexpr uint32_t lanes(DType t) { return static_cast<uint32_t>(4 / size_bytes(t)); }
constexpr std::string_view compute_type(DType t) { return is_float(t) ? "f32" : "i32"; }

// i64 is held as i32 on the GPU; everything else as it is.
constexpr DType gpu_type(DType t) { return t == DType::kI64 ? DType::kI32 : t; }

std::string load_body(DType t, std::string_view name) {
  switch (t) {
    case DType::kF32: return fmt::format("return bitcast<f32>({}[i]);", name);
    case DType::kI32: return fmt::format("return bitcast<i32>({}[i]);", name);
    case DType::kF16:
      return fmt::format(
          "let pair = unpack2x16float({}[i >> 1u]); return select(pair.x, pair.y, (i & 1u) == 1u);",
          name);
    case DType::kI8:
      return fmt::format("return extractBits(bitcast<i32>({}[i >> 2u]), (i & 3u) * 8u, 8u);", name);
    default: return fmt::format("return i32(extractBits({}[i >> 2u], (i & 3u) * 8u, 8u));", name);
  }
}

std::string encode_body(DType t) {
  switch (t) {
    case DType::kF32:
    case DType::kI32: return "return bitcast<u32>(v);";
    case DType::kF16: return "return pack2x16float(vec2<f32>(v, 0.0)) << (lane * 16u);";
    case DType::kBool: return "return select(0u, 1u, v != 0) << (lane * 8u);";
    default: return "return (bitcast<u32>(v) & 0xffu) << (lane * 8u);";
  }
}

std::string declare(size_t binding, const Bind& b, DType t) {
  const bool written =
      b.access == Access::kWords || b.access == Access::kElements || b.access == Access::kRawWrite;
  const bool raw = b.access == Access::kRawRead || b.access == Access::kRawWrite;
  std::string text =
      fmt::format("@group(0) @binding({}) var<storage, {}> {}: array<{}>;\n", binding,
                  written ? "read_write" : "read", b.name, raw ? b.as : "u32");
  if (raw) return text;
  const std::string_view ct = compute_type(t);
  text += fmt::format("alias {}_t = {};\n", b.name, ct);
  switch (b.access) {
    case Access::kRead:
      text += fmt::format("fn load_{}(i: u32) -> {} {{ {} }}\n", b.name, ct, load_body(t, b.name));
      break;
    case Access::kWords:
      text += fmt::format(
          "const {0}_lanes: u32 = {1}u;\nfn encode_{0}(lane: u32, v: {2}) -> u32 {{ {3} }}\n",
          b.name, lanes(t), ct, encode_body(t));
      break;
    case Access::kElements:
      text +=
          fmt::format("fn store_{0}(i: u32, v: {1}) {{ {0}[i] = bitcast<u32>(v); }}\n", b.name, ct);
      break;
    default: break;
  }
  return text;
}

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
  const auto k = static_cast<uint32_t>(constants.size());
  const Tensor y{ValueId{kMiddle - k}, dtype, dims};
  constants.push_back(
      {.source = source.id,
       .layout = std::move(layout),
       .size_bytes = align_up(static_cast<uint64_t>(y.numel()) * size_bytes(dtype), 16),
       .make = {}});
  make.bind = {{"source", source, Access::kRawRead, "u32"}, {"y", y, Access::kRawWrite, "u32"}};
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

// A kernel whose file says what it binds.
Status Plan::dispatch_kernel(const Node& n, const DispatchDesc& desc, const Kernel& kernel) {
  PlannedDispatch d;
  d.label = std::string(desc.shader->name);
  std::vector<Repack> repacks;
  size_t used = 0;
  for (const KernelTensor& t : kernel.tensors) {
    if (t.name == "live_scalars" || t.name == "faults") {
      const bool faults = t.name == "faults";
      d.bindings.push_back(
          {.kind = faults ? PlannedBinding::Kind::kFaults : PlannedBinding::Kind::kScalars,
           .written = faults});
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
  if (!(*kernel)->tensors.empty()) return dispatch_kernel(n, desc, **kernel);
  PlannedDispatch d;
  d.label = fmt::format("{}{}{}", desc.shader->name, desc.variant.empty() ? "" : "/", desc.variant);
  std::vector<Repack> repacks;
  std::string declarations;
  for (size_t i = 0; i < desc.bind.size(); ++i) {
    Bind& b = desc.bind[i];
    if (b.access == Access::kElements) b.tensor = widened(*this, b.tensor, repacks);
    const DType t = gpu_type(b.tensor.dtype);
    declarations += declare(i + 1, b, t);
    d.label += fmt::format("{}{}", i == 0 ? "/" : ",", name(t));
    PlannedBinding bound = binding(b.tensor);
    bound.written = b.access == Access::kWords || b.access == Access::kElements ||
                    b.access == Access::kRawWrite;
    d.bindings.push_back(bound);
  }
  if (!desc.live.empty()) {
    if (std::ranges::any_of(desc.live, &LiveInt::is_slot)) {
      declarations += fmt::format(
          "@group(0) @binding({}) var<storage, read> live_scalars: array<i32>;\n"
          "fn live(word: u32) -> i32 {{\n"
          "  if ((word >> 31u) == 0u) {{ return i32(word); }}\n"
          "  return live_scalars[word & 0x7fffffffu];\n}}\n",
          d.bindings.size() + 1);
      d.bindings.push_back({.kind = PlannedBinding::Kind::kScalars});
      d.label += "/live";
    } else {
      declarations += "fn live(word: u32) -> i32 { return i32(word); }\n";
    }
  }
  d.code.reserve(declarations.size() + desc.prelude.size() + (*kernel)->code.size() + 8);
  d.code += declarations;
  d.code += desc.prelude;
  d.code += '\n';
  d.code += (*kernel)->code;
  d.params.assign(desc.params.begin(), desc.params.end());
  d.grid = desc.grid;
  d.f16 = desc.f16;
  d.subgroups = desc.subgroups;
  d.subgroup_matrix = desc.subgroup_matrix;
  d.flops = desc.flops;
  dispatches.push_back(std::move(d));
  return pack(n, *this, repacks);
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

// Hand-made graphs and ceilings. SPDX-License-Identifier: BSD-3-Clause
#include "bench_graph.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "pteryx/gpu/environment.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/ops/table.h"
#include "pteryx/session/inspect.h"
#include "pteryx/session/layout.h"
#include "pteryx/session/native/blocking.h"

namespace pteryx::bench {
namespace {

template <typename T>
T must(Result<T> r) {
  if (r.ok()) return std::move(r).value();
  fmt::print(stderr, "{}\n", r.status().message());
  std::exit(1);
}
void must(const Status& s) {
  if (s.ok()) return;
  fmt::print(stderr, "{}\n", s.message());
  std::exit(1);
}

// Random bytes that all constants lie in, each at a place of its own: the device then holds a copy
// for each.
class RandomPool {
 public:
  ByteRange take(DType dtype, uint64_t bytes) {
    std::vector<std::byte>& pool = dtype == DType::kF16 ? halves_ : floats_;
    if (pool.empty()) fill(pool, dtype);
    next_ += 64;
    if (next_ + bytes > pool.size()) next_ = 64;
    return {dtype == DType::kF16 ? 1U : 0U, next_, bytes};
  }
  std::vector<SourcePtr> sources() const {
    return {std::make_shared<MemorySource>("random f32", floats_),
            std::make_shared<MemorySource>("random f16", halves_)};
  }

 private:
  static void fill(std::vector<std::byte>& pool, DType dtype) {
    pool.resize(size_t{320} << 20);
    const size_t element = size_bytes(dtype);
    uint32_t state = 1;
    for (size_t i = 0; i < pool.size() / element; ++i) {
      state = state * 1664525U + 1013904223U;
      const float v = (static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5F) * 0.05F;
      const uint16_t h = dtype == DType::kF16 ? float_to_half(v) : uint16_t{0};
      std::memcpy(&pool[i * element], dtype == DType::kF16 ? static_cast<const void*>(&h) : &v,
                  element);
    }
  }
  std::vector<std::byte> floats_;
  std::vector<std::byte> halves_;
  uint64_t next_ = 0;
};

RandomPool& pool() {
  static RandomPool p;
  return p;
}

constexpr std::string_view kStream = R"(
@group(0) @binding(0) var<uniform> n: vec4<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<u32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  for (var i = id.x; i < n.x; i += groups.x * 256u) { y[i] = x[i]; }
}
)";

constexpr std::string_view kFlops = R"(
@group(0) @binding(0) var<uniform> n: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let m = vec4<f32>(f32(n.y) * 0.5);
  var a = vec4<f32>(f32(id.x)); var b = a + 1.0; var c = a + 2.0; var d = a + 3.0;
  for (var i = 0u; i < n.x; i++) {
    a = fma(a, m, b); b = fma(b, m, c); c = fma(c, m, d); d = fma(d, m, a);
  }
  if (id.x == n.z) { y[0] = a + b + c + d; }
}
)";

// Seconds of one dispatch of a raw shader, the best of several runs of `repeat` dispatches.
double time_raw(std::string_view label, std::string_view code, std::vector<uint64_t> buffer_bytes,
                std::array<uint32_t, 4> params, gpu::Grid grid, int repeat) {
  gpu::Device& d = *device();
  std::vector<gpu::BindingKind> kinds = {gpu::BindingKind::kUniform};
  std::vector<gpu::Binding> bindings;
  std::vector<gpu::BufferId> buffers = {d.create_buffer({16, gpu::BufferKind::kUniform, label})};
  must(d.write(buffers[0], 0, std::as_bytes(std::span(params))));
  bindings.push_back({buffers[0], 0, 0});
  for (size_t i = 0; i < buffer_bytes.size(); ++i) {
    buffers.push_back(d.create_buffer({buffer_bytes[i], gpu::BufferKind::kStorage, label}));
    bindings.push_back({buffers.back(), 0, 0});
    const bool last = i + 1 == buffer_bytes.size();
    kinds.push_back(last ? gpu::BindingKind::kStorageReadWrite : gpu::BindingKind::kStorageRead);
  }
  const gpu::BufferId readback = d.create_buffer({4, gpu::BufferKind::kReadback, label});
  const gpu::PipelineId pipeline =
      d.create_pipeline({.label = label, .code = code, .constants = {}, .bindings = kinds});
  must(gpu::settle(d, pipeline));
  const gpu::BindGroupId group = d.create_bindings(pipeline, bindings, label);
  const std::vector<gpu::Dispatch> dispatches(static_cast<size_t>(repeat), {pipeline, group, grid});
  const gpu::Copy copy{buffers.back(), 0, readback, 0, 4};
  double best = 1e9;
  for (int i = 0; i < 8; ++i) {
    const auto start = std::chrono::steady_clock::now();
    must(d.submit(dispatches, std::span(&copy, 1)));
    const gpu::Ticket t = must(d.read(readback, 0, 4));
    must(gpu::wait(d, t));
    d.release(t);
    best = std::min(
        best,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeat);
  }
  d.destroy(group);
  for (const gpu::BufferId b : buffers) d.destroy(b);
  d.destroy(readback);
  return best;
}

}  // namespace

std::shared_ptr<gpu::Device> device() {
  static const std::shared_ptr<gpu::Device> d = [] {
    const gpu::DeviceOptions options = gpu::options_from_environment();
    gpu::show_software_driver(options.adapter, PTERYX_SOFTWARE_ICD);  // no thread exists yet
    auto opened = must(gpu::open_device(options));
    fmt::print("GPU: {} through {}\n", opened->caps().adapter, opened->caps().provider);
    return opened;
  }();
  return d;
}

const Ceilings& ceilings() {
  static const Ceilings c = [] {
    const bool software = device()->caps().software;
    const uint64_t bytes = software ? 16U << 20 : 512U << 20;
    const auto elements = static_cast<uint32_t>(bytes / 16);
    const gpu::Grid grid{software ? 64U : 8192U, 1, 1};
    const int repeat = software ? 2 : 40;
    Ceilings r;
    r.stream_bytes = 2.0 * static_cast<double>(bytes) /
                     time_raw("stream", kStream, {bytes, bytes}, {elements, 0, 0, 0}, grid, repeat);
    const uint32_t loops = software ? 64 : 4096;
    const double flops = 2.0 * 16.0 * loops * 256.0 * grid.x;
    r.f32_flops = flops / time_raw("flops", kFlops, {16}, {loops, 1, 0xFFFFFFFF, 0}, grid, repeat);
    fmt::print("stream {:.1f} GB/s (read + write), f32 {:.2f} TFLOP/s\n", r.stream_bytes / 1e9,
               r.f32_flops / 1e12);
    return r;
  }();
  return c;
}

void keep_busy(double seconds) {
  if (device()->caps().software) return;
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  while (passed() < seconds)
    time_raw("flops", kFlops, {16}, {4096, 1, 0xFFFFFFFF, 0}, {1024, 1, 1}, 4);
}

graph::ValueId GraphMaker::value(graph::Value v) {
  g_.values.push_back(std::move(v));
  g_.labels.push_back(fmt::format("value {}", g_.values.size() - 1));
  return graph::ValueId{static_cast<uint32_t>(g_.values.size() - 1)};
}

graph::ValueId GraphMaker::tensor(DType dtype, const Dims& dims) {
  return value(graph::Tensor{.dtype = dtype, .max = dims, .data = {}, .dim_order = {}});
}

graph::ValueId GraphMaker::constant(DType dtype, const Dims& dims) {
  const ByteRange data = pool().take(dtype, static_cast<uint64_t>(numel(dims)) * size_bytes(dtype));
  return value(graph::Tensor{.dtype = dtype, .max = dims, .data = {data}, .dim_order = {}});
}

graph::ValueId GraphMaker::state(DType dtype, const Dims& dims) {
  return value(
      graph::Tensor{.dtype = dtype, .max = dims, .data = {}, .dim_order = {}, .state = true});
}

void GraphMaker::node(std::string_view op, std::vector<graph::ValueId> args) {
  graph::Node n;
  n.op = ops::lookup().find(op);
  n.spelling = g_.spellings.emplace_back(op);
  n.args = std::move(args);
  n.call = static_cast<uint32_t>(g_.nodes.size());
  g_.nodes.push_back(std::move(n));
}

void GraphMaker::output(graph::ValueId from) {
  const graph::Tensor& t = *g_.tensor(from);
  const graph::ValueId one = value(int64_t{1});
  graph::ValueId at = from;
  Dims dims = t.max;
  const DType dtype = t.dtype;
  for (size_t d = 0; d < dims.rank(); ++d) {
    if (dims[d] == 1) continue;
    dims[d] = 1;
    const graph::ValueId next = tensor(dtype, dims);
    const graph::ValueId dim = value(static_cast<int64_t>(d));
    const graph::ValueId zero = value(int64_t{0});
    node("aten.slice_copy.Tensor", {at, dim, zero, one, one, next});
    at = next;
  }
  g_.outputs = {at};
}

Runner::Runner(graph::Graph g, const RunOptions& options) : constants_(device(), pool().sources()) {
  constexpr uint32_t kRecordings = 16;
  const std::string routes =
      options.routes.empty() ? gpu::variable("PTERYX_ROUTE") : options.routes;
  const ops::PlanContext context = must(make_context(device()->caps(), routes, options.precision));
  Layout layout = must(make_layout(g, context, {}));
  std::vector<exec::StateRoot> roots = must(states_.add(g, layout));
  states_.begin(constants_);
  method_ = std::make_unique<exec::Method>(std::move(g), std::move(layout),
                                           exec::Method::States{states_, std::move(roots)}, context,
                                           constants_, kRecordings);
  must(blocking::load(*method_, *device()));
  run();
  const uint64_t before = device()->counters().dispatches;
  run();
  dispatches_ = device()->counters().dispatches - before;
}

void Runner::run() { must(blocking::run(*method_, *device(), {})); }

}  // namespace pteryx::bench

// Hand-made graphs and peaks. SPDX-License-Identifier: BSD-3-Clause
#include "bench_graph.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <span>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "pteryx/cpu/pool.h"
#include "pteryx/cpu/processors.h"
#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/environment.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/native/peaks.h"
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

}  // namespace

std::shared_ptr<gpu::Device> device() {
  static const std::shared_ptr<gpu::Device> d = [] {
    const gpu::DeviceOptions options = gpu::options_from_environment();
    gpu::show_software_driver(options.adapter, PTERYX_SOFTWARE_ICD);  // no thread exists yet
    const std::string choice = gpu::variable("PTERYX_DEVICE");
    auto opened = choice == "cpu"   ? gpu::cpu_device()
                  : choice == "gpu" ? must(gpu::open_device(options))
                                    : must(gpu::open_gpu_or_cpu(options));
    const gpu::Caps& caps = opened->caps();
    if (caps.cpu) {
      fmt::print("CPU: {}, {} threads; PTERYX_ADAPTER=software takes a software GPU\n",
                 caps.adapter, cpu::usable_cores());
    } else {
      fmt::print("GPU: {} through {}\n", caps.adapter, caps.provider);
    }
    return opened;
  }();
  return d;
}

namespace {

// What all threads together read from memory.
double read_bytes_per_s() {
  constexpr size_t kPart = size_t{1} << 20;
  constexpr size_t kParts = 256;
  const std::vector<uint64_t> words(kParts * kPart / sizeof(uint64_t), 1);
  const std::shared_ptr<cpu::Pool> threads = cpu::shared_pool(0);
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::atomic<uint64_t> all{0};
    threads->run(kParts, [&](size_t part, size_t) {
      const auto own = std::span(words).subspan(part * kPart / sizeof(uint64_t));
      uint64_t sum = 0;
      for (const uint64_t w : own.first(kPart / sizeof(uint64_t))) sum += w;
      all += sum;
    });
    benchmark::DoNotOptimize(all.load());
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return static_cast<double>(kParts * kPart) / best;
}

}  // namespace

const gpu::Peaks& peaks() {
  static const gpu::Peaks measured = [] {
    if (device()->caps().cpu) {
      const gpu::Peaks p{.bytes_per_s = read_bytes_per_s(), .flops_per_s = 0};
      fmt::print("stream {:.1f} GB/s (read)\n", p.bytes_per_s / 1e9);
      return p;
    }
    const gpu::Peaks p = must(gpu::measure_peaks(*device()));
    fmt::print("stream {:.1f} GB/s (read + write), f32 {:.2f} TFLOP/s\n", p.bytes_per_s / 1e9,
               p.flops_per_s / 1e12);
    return p;
  }();
  return measured;
}

void keep_busy(double seconds) {
  const gpu::Caps& caps = device()->caps();
  if (!caps.software && !caps.cpu) must(gpu::keep_busy(*device(), seconds));
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
  Layout layout = must(make_layout(g, context));
  std::vector<exec::StateRoot> roots = must(states_.add(g, layout));
  states_.begin(constants_);
  method_ = std::make_unique<exec::Method>(
      std::move(g), std::move(layout), exec::Method::States{states_, std::move(roots)}, context,
      constants_, kRecordings,
      exec::CpuKernels{.pool = cpu::shared_pool(0), .precision = options.precision});
  must(blocking::load(*method_, *device()));
  run();
  if (device()->caps().cpu) {
    dispatches_ = method_->graph().nodes.size();
    return;
  }
  const uint64_t before = device()->counters().dispatches;
  run();
  dispatches_ = device()->counters().dispatches - before;
}

void Runner::run() { must(blocking::run(*method_, *device(), {})); }

double Runner::gpu_us() {
  Profile profile(device(), Profile::Detail::kSubmits);
  must(method_->runner().begin(
      {.state = &method_->states().state(), .profiler = &profile.profiler()}));
  must(gpu::finish(*device(), method_->runner()));
  must(gpu::finish(*device(), profile));
  double us = 0;
  for (const Profile::GpuSpan& span : profile.gpu()) us += span.end_us - span.begin_us;
  return us;
}

}  // namespace pteryx::bench

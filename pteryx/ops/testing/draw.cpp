// Drawing sizes and values, and checking a drawn call. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/testing/draw.h"

#include <algorithm>
#include <cmath>

namespace pteryx::ops::testing {

int64_t Draw::integer(int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(engine_() % static_cast<uint64_t>(hi - lo + 1));
}

double Draw::real(double lo, double hi) {
  return lo + (hi - lo) * (static_cast<double>(engine_()) / 0x1p32);
}

Dims Draw::full_dims(size_t min_rank, size_t max_rank, int64_t most) {
  const int64_t rank = integer(static_cast<int64_t>(min_rank), static_cast<int64_t>(max_rank));
  const int64_t long_dim = rank > 0 && chance(0.125) ? integer(0, rank - 1) : -1;
  Dims dims;
  int64_t count = 1;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t size = d == long_dim ? integer(8, 300) : (chance(0.2) ? 1 : integer(1, 6));
    size = std::max<int64_t>(1, std::min(size, most / count));
    count *= size;
    dims.push_back(size);
  }
  return dims;
}

Dims Draw::dims(size_t min_rank, size_t max_rank, int64_t most) {
  Dims dims = full_dims(min_rank, max_rank, most);
  if (!dims.empty() && chance(1.0 / 30))
    dims[static_cast<size_t>(integer(0, static_cast<int64_t>(dims.rank()) - 1))] = 0;
  return dims;
}

Dims Draw::narrowed(const Dims& to) {
  const auto drop = chance(0.3) ? integer(0, static_cast<int64_t>(to.rank())) : 0;
  Dims dims;
  for (size_t d = static_cast<size_t>(drop); d < to.rank(); ++d)
    dims.push_back(chance(0.3) ? 1 : to[d]);
  return dims;
}

TestTensor Draw::eighths(DType t, const Dims& dims, double lo, double hi) {
  if (!is_float(t)) return values(t, dims, t == DType::kU8 ? std::fmax(lo, 0) : lo, hi);
  TestTensor x = random(t, dims, seed(), lo * 8, hi * 8);
  for (double& v : x.data) v = std::round(v) / 8;
  return round_to(x, t);
}

TestTensor Draw::values(DType t, const Dims& dims, double lo, double hi) {
  return random(t, dims, seed(), lo, hi);
}

TestTensor Draw::ids(DType t, const Dims& dims, int64_t lo, int64_t hi) {
  return make(t, dims, [&](int64_t) { return static_cast<double>(integer(lo, hi)); });
}

int64_t Draw::dim_of(size_t rank) {
  if (rank == 0) return pick<int64_t>({0, -1});
  const auto size = static_cast<int64_t>(rank);
  return integer(0, size - 1) - (chance(0.5) ? size : 0);
}

std::vector<Generator> every_generator() {
  std::vector<Generator> all;
  for (const auto family : {attention_generators, elementwise_generators, embedding_generators,
                            image_generators, indexing_generators, linear_generators,
                            movement_generators, quantised_generators, reduction_generators}) {
    for (Generator& g : family()) all.push_back(std::move(g));
  }
  return all;
}

std::string check(const Drawn& drawn, Draw& d) {
  std::vector<TestTensor> want;
  if (drawn.want) {
    want = *drawn.want;
  } else {
    auto cpu = run(drawn.call, Where::kCpu);
    if (!cpu.ok()) return fmt::format("on the CPU: {}", cpu.status().message());
    want = *std::move(cpu);
  }
  if (const std::string wrong = compare_fast(drawn.call, want, drawn.tolerance); !wrong.empty())
    return fmt::format("on the CPU, fast: {}", wrong);
  const auto routes = gpu_routes(drawn.call);
  if (!routes.ok()) return std::string(routes.status().message());
  if (routes->empty()) return "does not run on the GPU";
  std::vector<std::string> tried = {""};
  const std::string& other =
      (*routes)[static_cast<size_t>(d.integer(0, static_cast<int64_t>(routes->size()) - 1))];
  if (!other.empty() && d.chance(0.05)) tried.push_back(other);
  for (const std::string& route : tried) {
    const auto got = run(drawn.call, Where::kGpu, route);
    if (!got.ok()) return fmt::format("route '{}': {}", route, got.status().message());
    const std::string wrong = compare(*got, want, drawn.tolerance);
    if (!wrong.empty()) return fmt::format("route '{}': {}", route, wrong);
  }
  return "";
}

}  // namespace pteryx::ops::testing

// One operator on the CPU, for the harness. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <gtest/gtest.h>

#include "pteryx/cpu/arena.h"
#include "pteryx/cpu/pool.h"
#include "pteryx/ops/cpu_scratch.h"
#include "pteryx/ops/testing/op_runner.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif

namespace pteryx::ops::testing {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr std::byte kDirt{0x7B};

// Every tensor of the graph, each with bytes behind it that nobody may read or write.
struct Memory : Host {
  const Runner& r;
  std::map<uint32_t, std::vector<std::byte>> bytes;

  explicit Memory(const Runner& runner) : r(runner) {}
  HostTensor host(ValueId id) const override {
    auto& b = const_cast<std::vector<std::byte>&>(bytes.at(graph::index(id)));
    return {r.g.tensor(id)->dtype, r.live.dims[graph::index(id)], b.data()};
  }
  std::span<const Bytes> parts(ValueId id) const override {
    const auto it = r.parts.find(graph::index(id));
    return it == r.parts.end() ? std::span<const Bytes>() : it->second;
  }
  size_t used(ValueId id) const {
    return static_cast<size_t>(numel(r.live.dims[graph::index(id)])) *
           size_bytes(r.g.tensor(id)->dtype);
  }
};

Bytes guard_of(Bytes tensor) { return tensor.last(kGuardBytes); }

Memory fill(const Runner& r) {
  Memory memory(r);
  for (uint32_t v = 0; v < r.g.values.size(); ++v) {
    const auto* t = r.g.tensor(ValueId{v});
    if (t == nullptr) continue;
    const auto it = r.inputs.find(v);
    std::vector<std::byte>& bytes = memory.bytes[v];
    if (it != r.inputs.end() && !r.parts.contains(v)) bytes = encode(it->second, t->dtype);
    bytes.resize(memory.used(ValueId{v}) + kGuardBytes, kDirt);
  }
  return memory;
}

// From here on AddressSanitizer reports who touches a guard, or does so no more.
void forbid([[maybe_unused]] Bytes guard) {
#if defined(ASAN_POISON_MEMORY_REGION)
  ASAN_POISON_MEMORY_REGION(guard.data(), guard.size());
#endif
}
void allow([[maybe_unused]] Bytes guard) {
#if defined(ASAN_UNPOISON_MEMORY_REGION)
  ASAN_UNPOISON_MEMORY_REGION(guard.data(), guard.size());
#endif
}

// While it stands, nobody may touch the bytes behind tensors.
class ForbiddenGuards {
 public:
  explicit ForbiddenGuards(const Memory& memory) : memory_(memory) {
    for (const auto& [v, bytes] : memory_.bytes) forbid(guard_of(bytes));
  }
  ForbiddenGuards(const ForbiddenGuards&) = delete;
  ForbiddenGuards& operator=(const ForbiddenGuards&) = delete;
  ~ForbiddenGuards() {
    for (const auto& [v, bytes] : memory_.bytes) allow(guard_of(bytes));
  }

 private:
  const Memory& memory_;
};

Status check_guards(const Memory& memory) {
  for (const auto& [v, bytes] : memory.bytes) {
    if (std::ranges::any_of(guard_of(bytes), [](std::byte b) { return b != kDirt; }))
      return invalid_argument(fmt::format("value {}: bytes behind its end were changed", v));
  }
  return {};
}

Result<bool> run_fast(const Node& n, const Memory& memory, Precision precision, size_t threads) {
  const std::shared_ptr<cpu::Pool> pool = cpu::shared_pool(threads);
  cpu::Arena arena;
  CpuContext context{*pool, arena, precision};
  const Runner& r = memory.r;
  const uint64_t told = cpu_scratch_bytes(r.g, r.live, n, *pool, precision);
  const ForbiddenGuards forbidden(memory);
  PTERYX_ASSIGN(const bool done, n.def().fast(n, memory, context));
  if (arena.taken() > told) {
    return invalid_argument(
        fmt::format("a fast kernel took {} bytes, and had told of {}", arena.taken(), told));
  }
  return done;
}

// The fast kernel, where there is one that takes the call: first it is asked for the memory that it
// takes. By itself a thread gives the same bits as with others.
Result<bool> try_fast(const Node& n, const Memory& memory, Precision precision) {
  constexpr size_t kThreads = 3;
  static const std::shared_ptr<cpu::Pool> kept = cpu::shared_pool(kThreads);
  if (n.def().fast == nullptr) return false;
  const auto before = memory.bytes;
  Memory alone(memory.r);
  alone.bytes = before;
  PTERYX_ASSIGN(const bool done, run_fast(n, memory, precision, kThreads));
  PTERYX_ASSIGN(const bool done_alone, run_fast(n, alone, precision, 1));
  if (!done && memory.bytes != before)
    return invalid_argument("a fast kernel that does not take a call changed tensors of it");
  if (done != done_alone || memory.bytes != alone.bytes)
    return invalid_argument("a fast kernel does something else on one thread");
  return done;
}

}  // namespace

Result<std::vector<TestTensor>> Runner::run_cpu(Where where) {
  const Memory memory = fill(*this);
  const Node n(g, g.nodes[0], *def, live);
  was_fast = false;
  if (where == Where::kFast) {
    PTERYX_ASSIGN(was_fast, try_fast(n, memory, precision));
  }
  if (!was_fast) {
    const ForbiddenGuards forbidden(memory);
    PTERYX_TRY(def->cpu(n, memory));
  }
  PTERYX_TRY(check_guards(memory));
  std::vector<TestTensor> out;
  for (const ValueId id : results) {
    const DType t = g.tensor(id)->dtype;
    out.push_back(decode(t, t, live.dims[graph::index(id)],
                         Bytes(memory.bytes.at(graph::index(id))).first(memory.used(id))));
  }
  return out;
}

bool is_fast(const Case& c) {
  Runner r;
  const Status s = r.build(c);
  EXPECT_TRUE(s.ok()) << s.message();
  if (!s.ok()) return false;
  const auto got = r.run_cpu(Where::kFast);
  EXPECT_TRUE(got.ok()) << got.status().message();
  return r.was_fast;
}

std::string compare_fast(const Case& c, const std::vector<TestTensor>& want, Tolerance tol,
                         Precision precision) {
  Runner r;
  if (const Status s = r.build(c); !s.ok()) return std::string(s.message());
  if (r.def->fast == nullptr) return "";
  r.precision = precision;
  const auto got = r.run_cpu(Where::kFast);
  if (!got.ok()) return std::string(got.status().message());
  return compare(*got, want, tol);
}

}  // namespace pteryx::ops::testing

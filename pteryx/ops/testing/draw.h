// Random calls of operators. A generator makes calls of one family; sizes, types, dims and scalars
// are drawn, and the same seed draws the same call.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <optional>
#include <ostream>
#include <random>
#include <string_view>
#include <vector>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {

class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}

  int64_t integer(int64_t lo, int64_t hi);  // both ends included
  double real(double lo, double hi);
  bool chance(double p) { return real(0, 1) < p; }
  template <typename T>
  T pick(std::initializer_list<T> items) {
    return *(items.begin() + integer(0, static_cast<int64_t>(items.size()) - 1));
  }
  uint32_t seed() { return static_cast<uint32_t>(engine_()); }

  // Small sizes, some of them 1; one in thirty tensors is empty, one in eight has a long dim.
  Dims dims(size_t min_rank, size_t max_rank, int64_t most = 3000);
  // The same without empty dims.
  Dims full_dims(size_t min_rank, size_t max_rank, int64_t most = 3000);
  // Some dims of `to` become 1 and leading ones go: broadcasts to `to`.
  Dims narrowed(const Dims& to);
  // Multiples of 1/8: exact in every float type, so that steps of floor, round and == agree.
  TestTensor eighths(DType t, const Dims& dims, double lo = -4, double hi = 4);
  TestTensor values(DType t, const Dims& dims, double lo = -2, double hi = 2);
  TestTensor ids(DType t, const Dims& dims, int64_t lo, int64_t hi);
  int64_t dim_of(size_t rank);  // any of them, half of the time counted from the end

 private:
  std::mt19937 engine_;
};

struct Drawn {
  Case call;
  Tolerance tolerance = kExact;
  std::optional<std::vector<TestTensor>> want = std::nullopt;  // none: what the CPU kernel gives
};

struct Generator {
  friend void PrintTo(const Generator& g, std::ostream* out) { *out << g.family; }

  std::string_view family;
  std::vector<std::string_view> ops;
  Drawn (*draw)(std::string_view op, Draw& d);
};

// One function for each file of generators.
std::vector<Generator> attention_generators();
std::vector<Generator> elementwise_generators();
std::vector<Generator> embedding_generators();
std::vector<Generator> image_generators();
std::vector<Generator> indexing_generators();
std::vector<Generator> linear_generators();
std::vector<Generator> movement_generators();
std::vector<Generator> quantised_generators();
std::vector<Generator> reduction_generators();
std::vector<Generator> every_generator();

// Position p of dims as an index; the plain type of references.
inline size_t at(int64_t i) { return static_cast<size_t>(i); }
inline bool is(std::string_view op, std::string_view part) {
  return op.find(part) != std::string_view::npos;
}
// Within which results of plain float arithmetic agree; a/r as in |got - want| <= a + r |want|.
inline Tolerance close(DType t, Tolerance f32 = {1e-6, 1e-5}) {
  return t == DType::kF16 ? Tolerance{2e-3, 3e-3} : (is_float(t) ? f32 : kExact);
}

// Runs the call on the GPU, with the default route and now and then with another that fits, and
// compares. "" or what is wrong.
std::string check(const Drawn& drawn, Draw& d);

}  // namespace pteryx::ops::testing

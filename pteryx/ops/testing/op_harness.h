// Runs one operator by itself, on the GPU through every route and on the CPU, for the tests of
// operators.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pteryx/ops/op.h"

namespace pteryx::gpu {
class Device;
}

namespace pteryx::ops::testing {

// Elements as doubles, rounded to the type when they enter the graph.
struct TestTensor {
  DType dtype = DType::kF32;
  Dims dims;
  std::vector<double> data;
};
TestTensor make(DType dtype, const Dims& dims, const std::function<double(int64_t)>& f);
// Uniform in [lo, hi]; integers for integer types; repeatable.
TestTensor random(DType dtype, const Dims& dims, uint32_t seed = 1, double lo = -2, double hi = 2);
TestTensor round_to(const TestTensor& t, DType dtype);

struct Tolerance {
  double absolute = 1e-5;
  double relative = 1e-5;
};
inline constexpr Tolerance kExact{0, 0};
Tolerance tolerance(DType t);  // for plain arithmetic at that type

// A call: arguments in schema order, then the result types and dims.
class Case {
 public:
  explicit Case(std::string op) : op_(std::move(op)) {}
  Case& in(TestTensor t);
  Case& constant(TestTensor t);  // of the file, rather than computed
  Case& none();
  Case& number(double v);
  Case& integer(int64_t v);
  Case& flag(bool v);
  Case& text(std::string v);
  Case& ints(std::vector<int64_t> v);
  Case& numbers(std::vector<double> v);
  Case& list(std::vector<TestTensor> v);
  Case& optional_list(std::vector<std::optional<TestTensor>> v);  // a list with None members
  Case& live(int64_t v);                       // a scalar known only while running
  Case& live_ints(std::vector<int64_t> v);     // a list of them
  Case& out(DType dtype, const Dims& dims);    // single result
  Case& outs(std::vector<TestTensor> shapes);  // several results: dtype and dims are used
  Case& scalar_out();
  Case& in_place();  // the result is argument 0
  Case& precision(Precision p);

  const std::string& op() const { return op_; }

 private:
  friend struct Runner;
  friend std::string describe(const Case& c);
  struct None {};
  struct Constant {
    TestTensor tensor;
  };
  struct LiveInt {
    int64_t value = 0;
  };
  struct LiveInts {
    std::vector<int64_t> values;
  };
  using Value = std::variant<None, TestTensor, double, int64_t, bool, std::string,
                             std::vector<int64_t>, std::vector<double>, std::vector<TestTensor>,
                             std::vector<std::optional<TestTensor>>, LiveInt, LiveInts, Constant>;
  std::string op_;
  std::vector<Value> args_;
  std::vector<TestTensor> outs_;
  bool out_is_list_ = false;
  bool in_place_ = false;
  Precision precision_ = Precision::kF32;
};

enum class Where : uint8_t {
  kGpu,
  kCpu,   // the reference
  kFast,  // the CPU with threads and vectors, where there is a kernel that takes the call
};

// Schema check, shape, plan, run. `route` is "" or a name of the op's family. Inputs the op mutates
// come after results. With PTERYX_DEVICE=cpu, kGpu is kFast, and whatever says so below runs on the
// CPU alone.
Result<std::vector<TestTensor>> run(const Case& c, Where where = Where::kGpu,
                                    const std::string& route = "");
// Plans the case for `caps` with a route that must fit, at f16 precision, and compiles what it
// needs on `device`.
Status compile(const Case& c, gpu::Device& device, const gpu::Caps& caps, const std::string& route);
// What the plan of a case takes.
struct Planned {
  std::string route;
  uint64_t scratch_bytes = 0;  // all of them
  size_t dispatches = 0;
};
// The plans of all routes that fit the case at f16 precision on a GPU with subgroup matrices.
Result<std::vector<Planned>> plan_all(const Case& c);
// The device of the tests as if it had subgroup matrices.
gpu::Caps emulated_caps();
// The routes that fit the case, the default one as ""; empty where the GPU cannot run it.
Result<std::vector<std::string>> gpu_routes(const Case& c);
// The arguments as text, for messages: "f32[2, 3], 1.5, None".
std::string describe(const Case& c);
// The scalar that shape() computes, for a case with scalar_out().
Result<Scalar> run_scalar(const Case& c);

// Whether the fast kernel of the CPU takes the case. With threads it gives the bits of one.
bool is_fast(const Case& c);

// "" if every element of got is within tol of want, else the first that is not.
std::string compare(const std::vector<TestTensor>& got, const std::vector<TestTensor>& want,
                    Tolerance tol);
// The same of the fast kernel of the CPU; "" where the op has none.
std::string compare_fast(const Case& c, const std::vector<TestTensor>& want, Tolerance tol,
                         Precision precision = Precision::kF32);
// Runs on the CPU, with both of its kernels, and on the GPU with every route that fits, and
// compares each with `want`. Where the op has no CPU kernel, or no GPU plan for these types, only
// the other is run; having neither fails.
void expect_op(const Case& c, const std::vector<TestTensor>& want, Tolerance tol);
// Runs the routes at f16 precision, or `only` one, with subgroup matrices, as planned for devices
// with bounds checks and, where that differs, without. Where the GPU has no such matrices, plain
// WGSL stands in for them; nothing is run on libraries that have none. The fast kernel of the CPU
// is run at that precision, too.
void expect_matrices(const Case& c, const std::vector<TestTensor>& want, Tolerance tol,
                     std::string_view only = {});
// Runs one route, which must fit, or "" for the default one, at the precision of the case, on the
// device less what `mask` takes from its capabilities; and the fast kernel of the CPU.
void expect_route(const Case& c, const std::string& route, const std::vector<TestTensor>& want,
                  Tolerance tol, const std::function<void(gpu::Caps&)>& mask = nullptr);
// Expects an error whose message contains `text`.
void expect_error(const Case& c, std::string_view text);

}  // namespace pteryx::ops::testing

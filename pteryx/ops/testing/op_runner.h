// One operator in a graph of its own, for the harness.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "pteryx/gpu/device.h"
#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {

gpu::Device& test_device();
// The elements of a tensor as they are stored, and back.
std::vector<std::byte> encode(const TestTensor& t, DType stored);
TestTensor decode(DType dtype, DType stored, const Dims& dims, Bytes bytes);

// Puts what such matrices do in place of them, where a kernel uses subgroup matrices.
void emulate_matrices(PlannedDispatch& d);

// Builds the one-node graph of a case and runs it.
struct Runner {
  graph::Graph g;
  Live live;
  std::map<uint32_t, TestTensor> inputs;
  std::vector<ValueId> results;
  const OpDef* def = nullptr;
  Precision precision = Precision::kF32;
  bool emulate = false;                       // subgroup matrices
  std::function<void(gpu::Caps&)> mask = {};  // takes capabilities away
  uint32_t invocations = 0;  // planned for workgroups of so many; 0: as the device has
  // On the CPU: constants that lie in several places, and so in none as a whole.
  std::map<uint32_t, std::vector<Bytes>> parts = {};
  bool was_fast = false;  // the last run on the CPU

  ValueId add(graph::Value v, const Dims& dims = {}) {
    g.values.push_back(std::move(v));
    g.labels.push_back(fmt::format("value {}", g.values.size() - 1));
    live.dims.push_back(dims);
    live.scalars.emplace_back();
    return ValueId{static_cast<uint32_t>(g.values.size() - 1)};
  }
  // Built larger than it is run: nothing may depend on the bound.
  ValueId add_tensor(const TestTensor& t) {
    Dims max = t.dims;
    for (int64_t& d : max) d += 2;
    return add(graph::Tensor{.dtype = t.dtype, .max = max, .data = {}, .dim_order = {}}, t.dims);
  }
  ValueId add_input(const TestTensor& t) {
    const ValueId id = add_tensor(t);
    inputs[graph::index(id)] = t;
    return id;
  }

  ValueId add_constant(const TestTensor& t) {
    // Known by its place; its bytes go to the buffer as those of inputs do.
    const ByteRange where{0, 4096 * g.values.size(), encode(t, t.dtype).size()};
    const ValueId id = add(
        graph::Tensor{.dtype = t.dtype, .max = t.dims, .data = {where}, .dim_order = {}}, t.dims);
    inputs[graph::index(id)] = t;
    return id;
  }

  Status build(const Case& c);

  Result<std::vector<TestTensor>> run_cpu(Where where);

  Result<std::vector<TestTensor>> run_gpu(const std::string& route);

  Result<std::vector<PlannedDispatch>> plan(PlanContext context, const std::string& route) const;

 private:
  Status check_buffers(PlanContext context, const std::string& route);
};

// What a call is planned as, with any route or a certain one.
Result<std::vector<PlannedDispatch>> plan_of(const Case& c, PlanContext context,
                                             const std::string& route = "");

}  // namespace pteryx::ops::testing

// Graphs made by hand, and loaded without a file.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/testing/compute.h"
#include "pteryx/graph/graph.h"
#include "pteryx/ops/table.h"
#include "pteryx/session/exec/method.h"
#include "pteryx/session/host_constants.h"
#include "pteryx/session/host_scratch.h"
#include "pteryx/session/inspect.h"
#include "pteryx/session/native/blocking.h"

namespace pteryx::testing {

struct GraphDraft {
  graph::Graph g;

  graph::ValueId value(graph::Value v) {
    g.values.push_back(std::move(v));
    g.labels.push_back("value " + std::to_string(g.values.size() - 1));
    return graph::ValueId{static_cast<uint32_t>(g.values.size() - 1)};
  }
  graph::ValueId tensor(const Dims& dims) {
    return value(graph::Tensor{.dtype = DType::kF32, .max = dims});
  }
  void call(std::string_view op, std::vector<graph::ValueId> args) {
    graph::Node n;
    n.spelling = op;
    n.op = ops::lookup().find(op);
    ASSERT_NE(n.op, nullptr) << op;
    n.args = std::move(args);
    g.nodes.push_back(std::move(n));
  }
};

class LoadedGraph {
 public:
  LoadedGraph(graph::Graph g, std::vector<SourcePtr> sources, const std::string& routes = "",
              const std::shared_ptr<gpu::Device>& device = gpu::shared_device())
      : device_(device),
        constants_(device, std::move(sources)),
        status_(load(std::move(g), routes)) {}

  const Status& status() const { return status_; }
  exec::Method& method() { return *method_; }
  // Of constants: what was told before anything was allocated.
  uint64_t copied_bytes() const { return copied_bytes_; }
  // Of temporaries on the CPU: what was told likewise, and what there is.
  uint64_t scratch_bytes() const { return scratch_bytes_; }
  uint64_t held_bytes() const { return kernels_.memory->size(); }
  Result<std::span<const Value>> run(std::span<const Value> inputs) {
    return blocking::run(*method_, *device_, inputs);
  }

 private:
  Status load(graph::Graph g, const std::string& routes) {
    constexpr uint32_t kRecordings = 16;
    PTERYX_ASSIGN(ops::PlanContext context, make_context(device_->caps(), routes));
    PTERYX_ASSIGN(Layout layout, make_layout(g, context));
    HostConstants constants(constants_.sources(), constants_.sources().size(),
                            {kernels_.pool.get(), kernels_.precision});
    constants.add(g, layout);
    copied_bytes_ = constants.copied();
    scratch_bytes_ = host_scratch_bytes(g, layout, *kernels_.pool, kernels_.precision);
    EXPECT_TRUE(kernels_.memory->reserve(scratch_bytes_));
    PTERYX_ASSIGN(std::vector<exec::StateRoot> roots, states_.add(g, layout));
    states_.begin(constants_);
    method_ = std::make_unique<exec::Method>(std::move(g), std::move(layout),
                                             exec::Method::States{states_, std::move(roots)},
                                             std::move(context), constants_, kRecordings, kernels_);
    return blocking::load(*method_, *device_);
  }

  std::shared_ptr<gpu::Device> device_;
  exec::ConstantPool constants_;
  exec::StateGroup states_;
  exec::CpuKernels kernels_{cpu::shared_pool(2)};
  uint64_t copied_bytes_ = 0;
  uint64_t scratch_bytes_ = 0;
  std::unique_ptr<exec::Method> method_;
  Status status_;
};

}  // namespace pteryx::testing

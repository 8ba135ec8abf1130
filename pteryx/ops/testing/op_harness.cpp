// The operator harness. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/testing/op_harness.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/ops/bind.h"
#include "pteryx/ops/schema.h"
#include "pteryx/ops/table.h"
#include "pteryx/ops/testing/matrix_emulation.h"
#include "pteryx/ops/testing/op_runner.h"

namespace pteryx::ops::testing {

gpu::Caps emulated_caps() {
  gpu::Caps caps = test_device().caps();
  if (caps.subgroup_matrix) return caps;
  caps.subgroup_matrix = true;
  caps.subgroup_min = caps.subgroup_max = 32;
  caps.subgroups = false;  // neighbours shuffle in smaller ones
  return caps;
}

// Calls that are broken behind a bracket or a comma stand on one line then.
std::string with_joined_lines(std::string_view code) {
  std::string out;
  for (size_t i = 0; i < code.size(); ++i) {
    if (code[i] != '\n' || out.empty() || (out.back() != '(' && out.back() != ',')) {
      out += code[i];
      continue;
    }
    if (out.back() == ',') out += ' ';
    while (i + 1 < code.size() && code[i + 1] == ' ') ++i;
  }
  return out;
}

void emulate_matrices(PlannedDispatch& d) {
  if (!d.subgroup_matrix) return;
  d.code = with_joined_lines(d.code);
  const auto replace = [&](std::string_view text, std::string_view with) {
    size_t at = d.code.find(text);
    EXPECT_NE(at, std::string::npos) << d.label << " has no " << text;
    for (; at != std::string::npos; at = d.code.find(text, at + with.size()))
      d.code.replace(at, text.size(), with);
  };
  replace("let lane = local % 32u;", "let lane = local % 32u;\n  lane_of_matrix = lane;");
  if (d.label.starts_with("attention_matrix")) {
    d.code += kAttentionEmulation;
    const bool two = d.code.find("> tile_v:") != std::string::npos;
    replace("V_TILE", two ? "tile_v" : "tile_k");
    for (const StandIn& each : kAttentionStandIns) {
      if (d.code.find(each.text) != std::string::npos) replace(each.text, each.with);
    }
  } else {
    std::string stores;
    for (const std::string y : {"y", "y1", "y2", "y3"}) {
      const std::string call = fmt::format("subgroupMatrixStore<row_major>(&{}, ", y);
      if (d.code.find(call) == std::string::npos) continue;
      replace(call, fmt::format("store_in_{}(", y));
      stores += fmt::format(fmt::runtime(kProductToMemory), fmt::arg("y", y));
    }
    const bool to_tile = d.code.find("Store<row_major>(&tile_y[owner], ") != std::string::npos;
    const bool to_sums = d.code.find("Store<row_major>(&tile_sums[owner], ") != std::string::npos;
    const bool from_residual = d.code.find("row_major>(&residual, ") != std::string::npos;
    for (const auto& [text, with] : kProductCalls) {
      if (d.code.find(text) != std::string::npos) replace(text, with);
    }
    EXPECT_EQ(d.code.find("subgroupMatrix"), std::string::npos) << d.label;
    d.code += kProductEmulation;
    d.code += stores;
    if (to_tile) d.code += kProductToTile;
    if (to_sums) d.code += kProductToSums;
    if (from_residual) d.code += kProductFromResidual;
  }
  d.subgroups = d.subgroups && test_device().caps().subgroups;
  d.subgroup_matrix = false;
}

TestTensor make(DType dtype, const Dims& dims, const std::function<double(int64_t)>& f) {
  TestTensor t{dtype, dims, {}};
  for (int64_t i = 0; i < numel(dims); ++i) t.data.push_back(f(i));
  return round_to(t, dtype);
}

TestTensor random(DType dtype, const Dims& dims, uint32_t seed, double lo, double hi) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(lo, hi);
  return make(dtype, dims, [&](int64_t) {
    const double v = uniform(engine);
    if (dtype == DType::kBool) return v > (lo + hi) / 2 ? 1.0 : 0.0;
    return is_float(dtype) ? v : std::round(v);
  });
}

TestTensor round_to(const TestTensor& t, DType dtype) {
  const std::vector<std::byte> bytes = encode(t, dtype);
  return decode(dtype, dtype, t.dims, bytes);
}

Tolerance tolerance(DType t) {
  if (t == DType::kF16) return {2e-3, 2e-3};
  if (t == DType::kBF16) return {1e-2, 1e-2};
  return is_float(t) ? Tolerance{1e-5, 1e-5} : kExact;
}

Case& Case::in(TestTensor t) {
  args_.emplace_back(std::move(t));
  return *this;
}
Case& Case::constant(TestTensor t) {
  args_.emplace_back(Constant{std::move(t)});
  return *this;
}
Case& Case::none() {
  args_.emplace_back(None{});
  return *this;
}
Case& Case::number(double v) {
  args_.emplace_back(v);
  return *this;
}
Case& Case::integer(int64_t v) {
  args_.emplace_back(v);
  return *this;
}
Case& Case::flag(bool v) {
  args_.emplace_back(v);
  return *this;
}
Case& Case::text(std::string v) {
  args_.emplace_back(std::move(v));
  return *this;
}
Case& Case::ints(std::vector<int64_t> v) {
  args_.emplace_back(std::move(v));
  return *this;
}
Case& Case::numbers(std::vector<double> v) {
  args_.emplace_back(std::move(v));
  return *this;
}
Case& Case::list(std::vector<TestTensor> v) {
  args_.emplace_back(std::move(v));
  return *this;
}
Case& Case::optional_list(std::vector<std::optional<TestTensor>> v) {
  args_.emplace_back(std::move(v));
  return *this;
}
Case& Case::live(int64_t v) {
  args_.emplace_back(LiveInt{v});
  return *this;
}
Case& Case::out(DType dtype, const Dims& dims) {
  outs_ = {{dtype, dims, {}}};
  return *this;
}
Case& Case::outs(std::vector<TestTensor> shapes) {
  outs_ = std::move(shapes);
  out_is_list_ = true;
  return *this;
}
Case& Case::live_ints(std::vector<int64_t> v) {
  args_.emplace_back(LiveInts{std::move(v)});
  return *this;
}
Case& Case::precision(Precision p) {
  precision_ = p;
  return *this;
}
Case& Case::in_place() {
  in_place_ = true;
  return *this;
}
Case& Case::scalar_out() {
  outs_.clear();
  return *this;
}

Result<std::vector<TestTensor>> run(const Case& c, Where where, const std::string& route) {
  Runner r;
  PTERYX_TRY(r.build(c));
  // Where the tests' device is the CPU, what it does.
  if (where == Where::kGpu && test_device().caps().cpu) where = Where::kFast;
  return where == Where::kGpu ? r.run_gpu(route) : r.run_cpu(where);
}

namespace {

// The code of every dispatch, with one route.
std::vector<std::string> codes_of(const Runner& r, const PlanContext& context, const Route& route) {
  const auto planned = r.plan(context, std::string(route.name));
  EXPECT_TRUE(planned.ok()) << planned.status().message();
  std::vector<std::string> codes;
  if (!planned.ok()) return codes;
  for (const PlannedDispatch& d : *planned) codes.push_back(d.code);
  return codes;
}

}  // namespace

void expect_matrices(const Case& c, const std::vector<TestTensor>& want, Tolerance tol,
                     std::string_view only) {
  EXPECT_EQ(compare_fast(c, want, tol, Precision::kF16), "") << c.op() << ", fast, rounded";
  if (!test_device().caps().f16 || test_device().caps().provider != "dawn")
    return;  // no such matrices
  Runner first;
  const Status s = first.build(c);
  ASSERT_TRUE(s.ok()) << s.message();
  int ran = 0;
  for (const Route& route : first.def->routes) {
    std::vector<std::string> before;
    for (const bool checks : {true, false}) {
      SCOPED_TRACE(fmt::format("{}, route {}, bounds checks {}", c.op(), route.name, checks));
      Runner r;
      ASSERT_TRUE(r.build(c).ok());
      r.emulate = !test_device().caps().subgroup_matrix;
      r.precision = Precision::kF16;
      r.mask = [&](gpu::Caps& caps) { caps.bounds_checks = checks; };
      PlanContext context{.caps = emulated_caps(), .precision = Precision::kF16};
      r.mask(context.caps);
      const Node n(r.g, r.g.nodes[0], *r.def, r.live);
      if (route.precision != Precision::kF16 || !route_fits(route, n, context)) continue;
      if (!only.empty() && route.name != only) continue;
      std::vector<std::string> codes = codes_of(r, context, route);
      if (codes == before) continue;
      before = std::move(codes);
      ++ran;
      const auto got = r.run_gpu(std::string(route.name));
      ASSERT_TRUE(got.ok()) << got.status().message();
      EXPECT_EQ(compare(*got, want, tol), "");
    }
  }
  EXPECT_GT(ran, 0) << c.op() << ": no route with subgroup matrices fits";
}

Status compile(const Case& c, gpu::Device& device, const gpu::Caps& caps,
               const std::string& route) {
  Runner r;
  PTERYX_TRY(r.build(c));
  const PlanContext context{.caps = caps,
                            .forced_routes = {{std::string(r.def->family), route}},
                            .precision = Precision::kF16};
  const Node n(r.g, r.g.nodes[0], *r.def, r.live);
  bool fits = false;
  for (const Route& each : r.def->routes)
    fits = fits || (each.name == route && route_fits(each, n, context));
  if (!fits) return unsupported("the route does not fit");
  Plan plan(context);
  PTERYX_TRY(r.def->plan(n, plan));
  for (const PlannedDispatch& d : plan.dispatches)
    PTERYX_TRY(gpu::settle(device, create_pipeline(device, d)));
  return {};
}

Result<std::vector<TestTensor>> run_within(const Case& c, uint32_t invocations) {
  Runner r;
  PTERYX_TRY(r.build(c));
  r.invocations = invocations;
  return r.run_gpu("");
}

Result<std::vector<Planned>> plan_all(const Case& c) {
  Runner r;
  PTERYX_TRY(r.build(c));
  const Node n(r.g, r.g.nodes[0], *r.def, r.live);
  std::vector<Planned> plans;
  for (const Route& route : r.def->routes) {
    const PlanContext context{
        .caps = emulated_caps(),
        .forced_routes = {{std::string(r.def->family), std::string(route.name)}},
        .precision = Precision::kF16};
    if (!route_fits(route, n, context)) continue;
    Plan plan(context);
    PTERYX_TRY(r.def->plan(n, plan));
    uint64_t bytes = 0;
    for (const uint64_t each : plan.scratch_bytes) bytes += each;
    bytes += plan.counted_bytes;
    plans.push_back({std::string(route.name), bytes, plan.dispatches.size()});
  }
  return plans;
}

Result<std::vector<std::string>> gpu_routes(const Case& c) {
  Runner r;
  PTERYX_TRY(r.build(c));
  const Node n(r.g, r.g.nodes[0], *r.def, r.live);
  const PlanContext context{.caps = test_device().caps(), .forced_routes = {}};
  std::vector<std::string> routes;
  if (!runs_on_gpu(n)) return routes;
  routes.emplace_back();
  if (context.caps.cpu) return routes;
  for (const Route& route : r.def->routes) {
    if (route_fits(route, n, context)) routes.emplace_back(route.name);
  }
  return routes;
}

Result<Scalar> run_scalar(const Case& c) {
  Runner r;
  PTERYX_TRY(r.build(c));
  return r.live.scalars[graph::index(r.g.nodes[0].args.back())];
}

std::string compare(const std::vector<TestTensor>& got, const std::vector<TestTensor>& want,
                    Tolerance tol) {
  for (size_t k = 0; k < want.size(); ++k) {
    for (size_t i = 0; i < want[k].data.size(); ++i) {
      const double g = got[k].data[i];
      const double w = want[k].data[i];
      if (std::isnan(w) ? std::isnan(g) : g == w) continue;
      if (!(std::fabs(g - w) <= tol.absolute + tol.relative * std::fabs(w))) {
        return fmt::format("result {} element {}: want {}, got {}", k, i, w, g);
      }
    }
  }
  return "";
}

void expect_op(const Case& c, const std::vector<TestTensor>& want, Tolerance tol) {
  Runner r;
  if (const Status s = r.build(c); !s.ok()) {
    ADD_FAILURE() << c.op() << ": " << s.message();
    return;
  }
  int ran = 0;
  const auto check = [&](const std::string& what, const Result<std::vector<TestTensor>>& got) {
    ++ran;
    if (!got.ok()) {
      ADD_FAILURE() << c.op() << " " << what << ": " << got.status().message();
      return;
    }
    if (const std::string text = compare(*got, want, tol); !text.empty())
      ADD_FAILURE() << c.op() << " " << what << ": " << text;
  };
  if (r.def->cpu != nullptr) check("on the CPU", run(c, Where::kCpu));
  EXPECT_EQ(compare_fast(c, want, tol, r.precision), "") << c.op() << ", fast";
  const Node n(r.g, r.g.nodes[0], *r.def, r.live);
  if (runs_on_gpu(n) && !test_device().caps().cpu) {
    check("on the GPU", run(c, Where::kGpu));
    for (const Route& route : r.def->routes) {
      if (!route_fits(route, n, {.caps = test_device().caps(), .precision = r.precision})) continue;
      check(fmt::format("on the GPU, route {}", route.name),
            run(c, Where::kGpu, std::string(route.name)));
    }
  }
  EXPECT_GT(ran, 0) << c.op() << " ran nowhere";
}

void expect_route(const Case& c, const std::string& route, const std::vector<TestTensor>& want,
                  Tolerance tol, const std::function<void(gpu::Caps&)>& mask) {
  Runner r;
  const Status s = r.build(c);
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(compare_fast(c, want, tol, r.precision), "") << c.op() << ", fast";
  if (test_device().caps().cpu) return;
  r.mask = mask;
  PlanContext context{.caps = test_device().caps(), .precision = r.precision};
  if (mask) mask(context.caps);
  const Node n(r.g, r.g.nodes[0], *r.def, r.live);
  const bool fits = route.empty() || std::ranges::any_of(r.def->routes, [&](const Route& each) {
                      return each.name == route && route_fits(each, n, context);
                    });
  ASSERT_TRUE(fits) << c.op() << ": route " << route << " does not fit";
  const auto got = r.run_gpu(route);
  ASSERT_TRUE(got.ok()) << c.op() << ", route " << route << ": " << got.status().message();
  EXPECT_EQ(compare(*got, want, tol), "") << c.op() << ", route " << route;
}

void expect_error(const Case& c, std::string_view text) {
  Runner r;
  Status s = r.build(c);
  if (s.ok() && r.def->plan != nullptr) {
    const PlanContext context{.caps = test_device().caps()};
    Plan plan(context);
    s = r.def->plan(Node(r.g, r.g.nodes[0], *r.def, r.live), plan);
  }
  ASSERT_FALSE(s.ok()) << c.op() << " was accepted";
  EXPECT_NE(s.message().find(text), std::string_view::npos) << s.message();
}

}  // namespace pteryx::ops::testing

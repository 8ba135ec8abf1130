// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/testing/op_runner.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>

#include <fmt/format.h>

#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/ops/bind.h"
#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/schema.h"
#include "pteryx/ops/table.h"
#include "pteryx/ops/testing/workgroup.h"

namespace pteryx::ops::testing {

gpu::Device& test_device() {
  // Planned as for a large GPU, whose plans have more parts.
  static const std::shared_ptr<gpu::Device> device =
      gpu::open_or_die({.sizes = gpu::Sizes{.processors = 132, .invocations = 2048}});
  return *device;
}

std::vector<std::byte> encode(const TestTensor& t, DType stored) {
  std::vector<std::byte> bytes(t.data.size() * size_bytes(stored));
  const HostTensor h{stored, {static_cast<int64_t>(t.data.size())}, bytes.data()};
  for (size_t i = 0; i < t.data.size(); ++i) {
    if (is_float(stored)) {
      h.put(static_cast<int64_t>(i), t.data[i]);
    } else {
      h.put_integer(static_cast<int64_t>(i), static_cast<int64_t>(t.data[i]));
    }
  }
  return bytes;
}

TestTensor decode(DType dtype, DType stored, const Dims& dims, Bytes bytes) {
  TestTensor t{dtype, dims, {}};
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  const HostTensor h{stored, dims, copy.data()};
  for (int64_t i = 0; i < numel(dims); ++i) t.data.push_back(h.number(i));
  return t;
}

namespace {

constexpr uint64_t kGuardBytes = 256;
constexpr std::byte kDirt{0x7B};

// Bytes behind what a kernel may write.
struct Guard {
  std::string what;
  gpu::BufferId buffer;
  uint64_t at = 0;
  uint64_t size = kGuardBytes;
  std::byte value = kDirt;  // of every byte
};

DType gpu_type(DType t) { return t == DType::kI64 ? DType::kI32 : t; }

}  // namespace

Status Runner::build(const Case& c) {
  const graph::OpInfo* info = lookup().find(c.op_);
  if (info == nullptr) return unsupported(fmt::format("unknown operator {}", c.op_));
  def = &op(*info);
  precision = c.precision_;
  graph::Node node;
  node.op = info;
  for (const Case::Value& v : c.args_) {
    if (const auto* t = std::get_if<TestTensor>(&v))
      node.args.push_back(add_input(*t));
    else if (const auto* k = std::get_if<Case::Constant>(&v))
      node.args.push_back(add_constant(k->tensor));
    else if (std::holds_alternative<Case::None>(v))
      node.args.push_back(add(graph::Null{}));
    else if (const auto* d = std::get_if<double>(&v))
      node.args.push_back(add(*d));
    else if (const auto* i = std::get_if<int64_t>(&v))
      node.args.push_back(add(*i));
    else if (const auto* b = std::get_if<bool>(&v))
      node.args.push_back(add(*b));
    else if (const auto* s = std::get_if<std::string>(&v))
      node.args.push_back(add(*s));
    else if (const auto* l = std::get_if<std::vector<int64_t>>(&v))
      node.args.push_back(add(graph::IntList{*l}));
    else if (const auto* f = std::get_if<std::vector<double>>(&v))
      node.args.push_back(add(graph::DoubleList{*f}));
    else if (const auto* ts = std::get_if<std::vector<TestTensor>>(&v)) {
      graph::ValueList list;
      for (const TestTensor& item : *ts) list.items.push_back(add_input(item));
      node.args.push_back(add(std::move(list)));
    } else if (const auto* os = std::get_if<std::vector<std::optional<TestTensor>>>(&v)) {
      graph::ValueList list;
      for (const auto& item : *os) list.items.push_back(item ? add_input(*item) : graph::kNoValue);
      node.args.push_back(add(std::move(list)));
    } else if (const auto* n = std::get_if<Case::LiveInt>(&v)) {
      node.args.push_back(add(graph::LiveScalar{}));
      live.scalars.back() = {graph::ScalarKind::kInt, n->value, static_cast<double>(n->value)};
    } else if (const auto* ns = std::get_if<Case::LiveInts>(&v)) {
      graph::ValueList list;
      for (const int64_t item : ns->values) {
        list.items.push_back(add(graph::LiveScalar{}));
        live.scalars.back() = {graph::ScalarKind::kInt, item, static_cast<double>(item)};
      }
      node.args.push_back(add(std::move(list)));
    }
  }
  if (c.in_place_) {
    node.args.push_back(node.args[0]);
  } else if (c.outs_.empty()) {
    node.args.push_back(add(graph::LiveScalar{}));
  } else if (!c.out_is_list_) {
    results.push_back(add_tensor(c.outs_[0]));
    node.args.push_back(results[0]);
  } else {
    graph::ValueList list;
    for (const TestTensor& t : c.outs_) list.items.push_back(add_tensor(t));
    results = list.items;
    node.args.push_back(add(std::move(list)));
  }
  g.nodes.push_back(std::move(node));
  graph::number_scalars(g);
  PTERYX_TRY(check_schema(g, g.nodes[0], *def));
  Live next = live;
  const Node n(g, g.nodes[0], *def, live);
  Shapes shapes(n, next);
  PTERYX_TRY(def->shape(n, shapes));
  for (size_t i = 0; i < results.size(); ++i) {
    const Dims& got = next.dims[graph::index(results[i])];
    if (got != c.outs_[i].dims) {
      return invalid_argument(fmt::format("shape of result {}: want {}, got {}", i,
                                          to_string(c.outs_[i].dims), to_string(got)));
    }
  }
  live = next;
  for (size_t a = 0; a < def->args.size(); ++a) {
    const ValueId id = g.nodes[0].args[a];
    if (def->args[a].mutated && g.tensor(id) != nullptr) results.push_back(id);
  }
  return {};
}

// Every device binds eight storage buffers, and many no more: planned for one of those, no kernel
// has more.
Status Runner::check_buffers(PlanContext context, const std::string& route) {
  context.caps.max_storage_buffers = std::min(context.caps.max_storage_buffers, 8U);
  const Node n(g, g.nodes[0], *def, live);
  const bool fits = route.empty() || std::ranges::any_of(def->routes, [&](const Route& each) {
                      return each.name == route && route_fits(each, n, context);
                    });
  if (!fits) return {};
  Plan plan(context, 0);
  PTERYX_TRY(def->plan(n, plan));
  for (const PlannedDispatch& d : plan.dispatches) {
    if (d.bindings.size() <= context.caps.max_storage_buffers) continue;
    return device_error(fmt::format("{}: {} storage buffers, the device has {}", d.label,
                                    d.bindings.size(), context.caps.max_storage_buffers));
  }
  return {};
}

Result<std::vector<TestTensor>> Runner::run_gpu(const std::string& route) {
  gpu::Device& dev = test_device();
  PlanContext context{.caps = emulate ? emulated_caps() : dev.caps(), .precision = precision};
  if (mask) mask(context.caps);
  if (invocations != 0)
    context.caps.max_invocations = context.caps.max_workgroup_size_x = invocations;
  if (!route.empty()) context.forced_routes.emplace_back(def->family, route);
  PTERYX_TRY(check_buffers(context, route));
  // Indices are reported to the second slot.
  constexpr uint32_t kSlot = 1;
  constexpr uint64_t kFaultBytes = uint64_t{2} * kFaultWords * 4;
  Plan plan(context, kSlot);
  PTERYX_TRY(def->plan(Node(g, g.nodes[0], *def, live), plan));
  for (const PlannedDispatch& d : plan.dispatches) {
    if (invocations == 0) break;
    const uint32_t size = workgroup_size(d);
    if (size == 0 || size > context.caps.max_invocations) {
      return device_error(fmt::format("{}: {} invocations a workgroup, the device has {}", d.label,
                                      size, context.caps.max_invocations));
    }
  }
  std::map<uint32_t, gpu::BufferId> values;
  std::vector<gpu::BufferId> owned;
  std::vector<Guard> guards;
  std::vector<gpu::BindGroupId> groups;
  const auto buffer = [&](uint64_t size, gpu::BufferKind kind) -> Result<gpu::BufferId> {
    PTERYX_ASSIGN(const gpu::BufferId id,
                  gpu::wait_for(dev, dev.create_buffer({size, kind, "test"})));
    owned.push_back(id);
    return id;
  };
  // Old contents everywhere: a kernel must not count on zeros, nor on bytes behind the live end, of
  // which `used` are its own; and it must leave alone what is behind them.
  const auto guarded = [&](std::string_view what, uint64_t size,
                           uint64_t used) -> Result<gpu::BufferId> {
    const uint64_t all = align_up(size, 16) + kGuardBytes;
    PTERYX_ASSIGN(const gpu::BufferId id, buffer(all, gpu::BufferKind::kStorage));
    PTERYX_TRY(dev.write(id, 0, std::vector<std::byte>(all, kDirt)));
    guards.push_back({std::string(what), id, align_up(used, 16)});
    return id;
  };
  for (uint32_t v = 0; v < g.values.size(); ++v) {
    const auto* t = g.tensor(ValueId{v});
    if (t == nullptr) continue;
    const uint64_t element = size_bytes(gpu_type(t->dtype));
    PTERYX_ASSIGN(values[v], guarded(g.labels[v], static_cast<uint64_t>(numel(t->max)) * element,
                                     static_cast<uint64_t>(numel(live.dims[v])) * element));
    if (const auto it = inputs.find(v); it != inputs.end()) {
      PTERYX_TRY(dev.write(values[v], 0, encode(it->second, gpu_type(t->dtype))));
    }
  }
  std::vector<gpu::BufferId> scratch;
  for (const uint64_t bytes : plan.scratch_bytes) {
    PTERYX_ASSIGN(const gpu::BufferId id, guarded("a temporary", bytes, bytes));
    scratch.push_back(id);
  }
  gpu::BufferId counted = gpu::BufferId::kNone;
  if (plan.counted_bytes > 0) {
    constexpr uint64_t kCounterBytes = kCounters * 4;
    PTERYX_ASSIGN(counted, guarded("a temporary", plan.counted_bytes, plan.counted_bytes));
    PTERYX_TRY(dev.write(counted, 0, std::vector<std::byte>(kCounterBytes)));
    guards.push_back({"counters", counted, 0, kCounterBytes, std::byte{0}});
  }
  std::vector<int32_t> slots = {0};
  for (size_t v = 0; v < g.values.size(); ++v) {
    const auto* scalar = std::get_if<graph::LiveScalar>(&g.values[v]);
    if (scalar == nullptr) continue;
    slots.resize(std::max<size_t>(slots.size(), scalar->slot + 1));
    slots[scalar->slot] = static_cast<int32_t>(live.scalars[v].i);
  }
  PTERYX_ASSIGN(const gpu::BufferId scalars, buffer(slots.size() * 4, gpu::BufferKind::kStorage));
  PTERYX_TRY(dev.write(scalars, 0, std::as_bytes(std::span(slots))));
  PTERYX_ASSIGN(const gpu::BufferId faults, buffer(kFaultBytes, gpu::BufferKind::kStorage));
  std::vector<gpu::BufferId> relaid;
  std::vector<const PlannedDispatch*> planned;
  for (const PlannedConstant& c : plan.constants) {
    PTERYX_ASSIGN(const gpu::BufferId id, guarded(c.layout, c.size_bytes, c.size_bytes));
    relaid.push_back(id);
    planned.push_back(&c.make);
  }
  for (PlannedDispatch& d : plan.dispatches) {
    if (emulate) emulate_matrices(d);
    planned.push_back(&d);
  }
  std::vector<gpu::Dispatch> dispatches;
  for (const PlannedDispatch* const each : planned) {
    const PlannedDispatch& d = *each;
    PTERYX_ASSIGN(const gpu::BufferId params, buffer(params_bytes(d), gpu::BufferKind::kUniform));
    PTERYX_TRY(dev.write(params, 0, d.params));
    dispatches.push_back(bind(dev, d, {params, 0, 0}, [&](const PlannedBinding& b) {
      gpu::BufferId bound = scalars;
      if (b.kind == PlannedBinding::Kind::kScratch) bound = scratch[b.scratch];
      if (b.kind == PlannedBinding::Kind::kCounted) bound = counted;
      if (b.kind == PlannedBinding::Kind::kConstant) bound = relaid[b.constant];
      if (b.kind == PlannedBinding::Kind::kFaults) bound = faults;
      if (b.kind == PlannedBinding::Kind::kValue) bound = values[graph::index(b.value)];
      return gpu::Binding{bound, 0, 0};
    }));
    groups.push_back(dispatches.back().bindings);
  }
  for (const gpu::Dispatch& d : dispatches) {
    PTERYX_TRY(gpu::settle(dev, d.pipeline));
    PTERYX_TRY(gpu::settle(dev, d.bindings));
  }
  std::vector<TestTensor> out;
  std::vector<gpu::Copy> copies;
  std::vector<uint64_t> offsets;
  uint64_t total = 0;
  for (const ValueId id : results) {
    const uint64_t bytes = align_up(static_cast<uint64_t>(numel(live.dims[graph::index(id)])) *
                                        size_bytes(gpu_type(g.tensor(id)->dtype)),
                                    4);
    offsets.push_back(total);
    if (bytes > 0)
      copies.push_back({values[graph::index(id)], 0, gpu::BufferId::kNone, total, bytes});
    total += align_up(bytes, 256);
  }
  uint64_t guard_at = total;
  for (const Guard& each : guards) {
    copies.push_back({each.buffer, each.at, gpu::BufferId::kNone, total, each.size});
    total += each.size;
  }
  copies.push_back({faults, 0, gpu::BufferId::kNone, total, kFaultBytes});
  PTERYX_ASSIGN(const gpu::BufferId readback,
                buffer(total + kFaultBytes, gpu::BufferKind::kReadback));
  for (gpu::Copy& c : copies) c.dst = readback;
  PTERYX_TRY(dev.submit(dispatches, copies));
  PTERYX_ASSIGN(const gpu::Ticket ticket, dev.read(readback, 0, total + kFaultBytes));
  PTERYX_TRY(gpu::wait(dev, ticket));
  const Bytes bytes = dev.mapped(ticket);
  for (size_t i = 0; i < results.size(); ++i) {
    const DType t = g.tensor(results[i])->dtype;
    const Dims& dims = live.dims[graph::index(results[i])];
    out.push_back(decode(
        t, gpu_type(t), dims,
        bytes.subspan(offsets[i], static_cast<size_t>(numel(dims)) * size_bytes(gpu_type(t)))));
  }
  Status overrun;
  for (const Guard& each : guards) {
    const Bytes guard = bytes.subspan(guard_at, each.size);
    guard_at += each.size;
    const auto changed = std::ranges::find_if(guard, [&](std::byte b) { return b != each.value; });
    if (changed == guard.end() || !overrun.ok()) continue;
    overrun =
        device_error(fmt::format("{}: byte {} {} was changed", each.what, changed - guard.begin(),
                                 each.value == kDirt ? "behind its end" : "of them"));
  }
  std::array<uint32_t, size_t{2} * kFaultWords> words{};
  std::memcpy(words.data(), bytes.data() + total, kFaultBytes);
  dev.release(ticket);
  for (const gpu::BindGroupId id : groups) dev.destroy(id);
  for (const gpu::BufferId id : owned) dev.destroy(id);
  PTERYX_TRY(dev.take_error());
  PTERYX_TRY(std::move(overrun));
  if (words[0] != 0) return device_error("a report in the slot of another node");
  if (words[kFaultWords] != 0) {
    return fault_status(Node(g, g.nodes[0], *def, live), std::span(words).last(kFaultWords));
  }
  return out;
}

Result<std::vector<PlannedDispatch>> Runner::plan(PlanContext context,
                                                  const std::string& route) const {
  if (!route.empty()) context.forced_routes = {{std::string(def->family), route}};
  Plan plan(context);
  PTERYX_TRY(def->plan(Node(g, g.nodes[0], *def, live), plan));
  return std::move(plan.dispatches);
}

Result<std::vector<PlannedDispatch>> plan_of(const Case& c, PlanContext context,
                                             const std::string& route) {
  Runner r;
  PTERYX_TRY(r.build(c));
  return r.plan(std::move(context), route);
}

}  // namespace pteryx::ops::testing

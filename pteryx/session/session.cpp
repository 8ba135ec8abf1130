// Session: the public face. SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>

#include <fmt/format.h>

#include "pteryx/gpu/device.h"
#include "pteryx/graph/build.h"
#include "pteryx/graph/passes/passes.h"
#include "pteryx/ops/table.h"
#include "pteryx/program/program.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/inspect.h"
#include "pteryx/session/limits.h"
#include "pteryx/session/method.h"

namespace pteryx {

struct Session::Impl {
  program::Program program;
  std::shared_ptr<gpu::Device> device;
  std::unique_ptr<ConstantPool> constants;
  std::vector<MethodInfo> infos;
  std::vector<std::unique_ptr<Method>> methods;
};

namespace {

bool selected(const LoadOptions& options, std::string_view name) {
  if (options.methods.empty()) return true;
  for (const std::string& m : options.methods) {
    if (m == name) return true;
  }
  return false;
}

}  // namespace

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::load(const std::string& path, const LoadOptions& options) {
  auto impl = std::make_unique<Impl>();
  const auto tell = [&](std::string_view what) -> Status {
    if (!options.progress || options.progress(what, 0, 0)) return {};
    return {Code::kCancelled, fmt::format("load cancelled while {}", what)};
  };
  PTERYX_TRY(tell("reading the program"));
  PTERYX_ASSIGN(impl->program, program::Program::open(path, options.data_files));
  for (const std::string& m : options.methods) {
    if (impl->program.find(m) == nullptr)
      return invalid_argument(fmt::format("{} has no method '{}'", path, m));
  }
  PTERYX_TRY(tell("opening the GPU"));
  impl->device = options.device;
  if (impl->device == nullptr) {
    PTERYX_ASSIGN(impl->device, gpu::open_device());
  }

  PTERYX_ASSIGN(const ops::PlanContext context,
                make_context(impl->device->caps(), options.testing.routes, options.precision));
  const std::span<const SourcePtr> sources = impl->program.sources();
  impl->constants = std::make_unique<ConstantPool>(
      impl->device, std::vector<SourcePtr>(sources.begin(), sources.end()));
  struct Prepared {
    graph::Graph graph;
    Layout layout;
  };
  std::vector<Prepared> prepared;
  MemoryNeed need;
  for (const program::MethodRecord& record : impl->program.methods()) {
    if (!selected(options, record.name)) continue;
    PTERYX_TRY(tell(fmt::format("planning method '{}'", record.name)));
    const auto where = [&](Status s) {
      return std::move(s).during(fmt::format("loading method '{}' of {}", record.name, path));
    };
    auto graph = graph::build_graph(impl->program, record, ops::lookup());
    if (!graph.ok()) return where(std::move(graph).status());
    if (options.all_logits) graph::keep_all_logits(*graph);
    if (options.testing.fuse) graph::run_passes(*graph, ops::lookup());
    if (options.sampling) graph::append_sampling(*graph, ops::lookup());
    auto layout = make_layout(*graph, context, {.cpu_only = options.cpu_only});
    if (!layout.ok()) return where(std::move(layout).status());
    Status fits = check_limits(*graph, *layout, impl->device->caps());
    if (!fits.ok()) return where(std::move(fits));
    need.constants += layout->memory.constants;
    need.activations += layout->memory.gpu_total() - layout->memory.constants;
    impl->infos.push_back(describe_method(*graph, *layout));
    prepared.push_back({std::move(graph).value(), std::move(layout).value()});
  }
  if (options.memory_limit != 0 && need.gpu_total() > options.memory_limit) {
    return memory_error(fmt::format("{} needs {} bytes of GPU memory, the limit is {}", path,
                                    need.gpu_total(), options.memory_limit));
  }
  impl->constants->set_total(need.constants);
  for (Prepared& p : prepared) {
    auto method = Method::create(std::move(p.graph), std::move(p.layout), impl->device, context,
                                 *impl->constants, options);
    if (!method.ok()) return std::move(method).status().during(fmt::format("loading {}", path));
    impl->methods.push_back(std::move(method).value());
  }
  PTERYX_TRY(impl->device->take_error());
  return Session(std::move(impl));
}

std::span<const MethodInfo> Session::methods() const { return impl_->infos; }

Result<std::span<const Value>> Session::run(std::string_view method,
                                            std::span<const Value> inputs) {
  Method* m = find(method);
  if (m == nullptr) return invalid_argument(fmt::format("there is no method '{}'", method));
  return m->run(inputs);
}

Status Session::reset() {
  for (const auto& m : impl_->methods) PTERYX_TRY(m->reset());
  return {};
}

Method* Session::find(std::string_view method) const {
  for (const auto& m : impl_->methods) {
    if (m->graph().method == method) return m.get();
  }
  return nullptr;
}

SourcePtr Session::named_data(std::string_view key) const {
  const auto& all = impl_->program.named_data();
  const auto it = all.find(key);
  if (it == all.end()) return nullptr;
  const ByteRange& data = it->second.data;
  return std::make_shared<RangeSource>(impl_->program.sources()[data.source], data.offset,
                                       data.size);
}

const std::shared_ptr<gpu::Device>& Session::device() const { return impl_->device; }

}  // namespace pteryx

// Session: the public face. SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "pteryx/profile.h"
#include "pteryx/session/impl.h"

namespace pteryx {
namespace {

// As Run::advance says.
constexpr std::chrono::milliseconds kTurn(10);

}  // namespace

Run::Run(Run&& other) noexcept
    : method_(std::exchange(other.method_, nullptr)), number_(other.number_) {}
Run& Run::operator=(Run&& other) noexcept {
  std::swap(method_, other.method_);
  std::swap(number_, other.number_);
  return *this;
}
Run::~Run() {
  if (method_ != nullptr) method_->runner().cancel(number_);
}
Result<bool> Run::advance() { return method_->runner().advance(); }
std::span<const Value> Run::outputs() const { return method_->runner().outputs(); }

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

std::span<const MethodInfo> Session::methods() const { return impl_->infos; }
const MemoryUse& Session::memory() const { return impl_->memory; }
size_t Session::threads() const { return impl_->threads; }

Result<Run> Session::start(std::string_view method, std::span<const Value> inputs,
                           const RunOptions& options) {
  exec::Method* const m = find(method);
  if (m == nullptr) return invalid_argument(fmt::format("there is no method '{}'", method));
  PTERYX_ASSIGN(
      const uint64_t number,
      m->runner().begin(
          {.inputs = inputs,
           .state = &m->states().state(),
           .outputs = options.outputs,
           .profiler = options.profile == nullptr ? nullptr : &options.profile->profiler(),
           .turn = kTurn}));
  return Run(*m, number);
}

Status Session::reset() {
  for (const auto& m : impl_->methods) {
    if (m->runner().is_running())
      return invalid_argument(fmt::format("a run of '{}' is under way", m->graph().method));
  }
  for (const auto& m : impl_->methods) PTERYX_TRY(m->runner().reset());
  for (exec::StateGroup& group : impl_->states) PTERYX_TRY(group.state().reset());
  return {};
}

exec::Method* Session::find(std::string_view method) const {
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

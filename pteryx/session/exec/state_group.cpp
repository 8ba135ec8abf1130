// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/state_group.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace pteryx::exec {
namespace {

constexpr uint64_t kFingerprintSeed = 0xCBF29CE484222325U;

// What a state is good for. Weights of other values in the same places are not noticed.
uint64_t fingerprint(const graph::Graph& g, uint64_t h) {
  const auto add = [&](uint64_t v) { h = (h ^ v) * 0x100000001B3U; };
  for (const graph::Value& v : g.values) {
    const auto* t = std::get_if<graph::Tensor>(&v);
    if (t == nullptr) continue;
    add(static_cast<uint64_t>(t->dtype));
    for (const int64_t d : t->max) add(static_cast<uint64_t>(d));
    for (const ByteRange& r : t->data) {
      add(r.offset);
      add(r.size);
    }
  }
  return h;
}

uint64_t bytes_of(const graph::Tensor& t) {
  return static_cast<uint64_t>(numel(t.max)) * size_bytes(t.dtype);
}

// Whether the host, too or alone, has its contents between runs.
bool is_on_host(const Root& r) { return !r.gpu || (r.cross_block && r.host); }

std::string describe(const graph::Tensor& t, const Root& r) {
  return fmt::format("{} {} on the {}", name(t.dtype), to_string(t.max),
                     !r.gpu          ? "CPU"
                     : is_on_host(r) ? "GPU and the CPU"
                                     : "GPU");
}

}  // namespace

Result<std::vector<StateRoot>> StateGroup::add(const graph::Graph& g, const Layout& layout) {
  form_.methods += fmt::format("{}'{}'", form_.methods.empty() ? "" : ", ", g.method);
  form_.fingerprint = fingerprint(g, form_.fingerprint == 0 ? kFingerprintSeed : form_.fingerprint);
  std::vector<StateRoot> roots;
  for (uint32_t i = 0; i < layout.roots.size(); ++i) {
    const Root& r = layout.roots[i];
    if (!r.state || (!r.gpu && !r.host)) continue;
    PTERYX_ASSIGN(const uint32_t cell, cell_of(g, r));
    roots.push_back({i, cell});
  }
  return roots;
}

Result<uint32_t> StateGroup::cell_of(const graph::Graph& g, const Root& r) {
  const graph::Tensor& t = *g.tensor(r.value);
  const auto next = static_cast<uint32_t>(form_.cells.size());
  if (t.shared) {
    PTERYX_TRY(check(g, r));
    const auto [it, is_new] =
        shared_.try_emplace(*t.shared, Shared{next, g.method, describe(t, r), bytes_of(t)});
    if (!is_new) {
      StateForm::Cell& c = form_.cells[it->second.cell];
      const uint64_t already = c.host ? c.host_bytes : 0;
      c.host = c.host || r.host;
      c.host_bytes = std::max(c.host_bytes, r.host_bytes);
      if (!c.tensor.has_data()) c.tensor = t;
      if (r.gpu) shared_bytes_ += r.gpu_bytes;
      if (r.host) shared_host_bytes_ += std::min(r.host_bytes, already);
      return it->second.cell;
    }
  }
  form_.cells.push_back({.label = std::string(g.label(r.value)),
                         .tensor = t,
                         .gpu = r.gpu,
                         .host = r.host,
                         .gpu_bytes = r.gpu_bytes,
                         .host_bytes = r.host_bytes});
  return next;
}

// Whoever has a shared place has all of it, in the same way: no method converts or moves for
// another.
Status StateGroup::check(const graph::Graph& g, const Root& r) const {
  const graph::Tensor& t = *g.tensor(r.value);
  const std::string here = describe(t, r);
  const uint64_t end = t.shared->offset + bytes_of(t);
  for (const auto& [place, s] : shared_) {
    if (place.memory != t.shared->memory) continue;
    if (place.offset >= end || place.offset + s.bytes <= t.shared->offset) continue;
    if (place == *t.shared && s.form == here) continue;
    return unsupported(fmt::format(
        "{} shares memory {} with method '{}': it is {} at byte {} here, {} at byte {} there",
        g.label(r.value), place.memory, s.method, here, t.shared->offset, s.form, place.offset));
  }
  return {};
}

void StateGroup::begin(const ConstantPool& constants) {
  constants_ = &constants;
  initial_ = std::make_unique<InitialValues>(form_.cells, constants.sources());
  state_ = new_state();
}

std::unique_ptr<State> StateGroup::new_state() const {
  return std::make_unique<State>(form_, *initial_, *constants_);
}

}  // namespace pteryx::exec

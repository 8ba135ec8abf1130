// SPDX-License-Identifier: BSD-3-Clause
#include "check.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <variant>

#include "pteryx/fuse/passes.h"
#include "pteryx/graph/build.h"
#include "pteryx/ops/table.h"
#include "pteryx/program/program.h"
#include "pteryx/program/testing/alone.h"
#include "pteryx/session/layout.h"
#include "pteryx/session/limits.h"

namespace pteryx::fuzz {
namespace {

using program::DelegateRecord;
using program::MethodRecord;
using program::NamedData;
using program::Program;
using program::TensorRecord;

volatile std::byte sink;

// Reads both ends, so that a sanitizer sees a span that leaves the file.
void touch(Bytes bytes) {
  if (bytes.empty()) return;
  sink = bytes.front();
  sink = bytes.back();
}

void touch(const Program& p, const ByteRange& range) {
  const auto bytes = p.sources()[range.source]->view(range.offset, range.size);
  if (!bytes) std::abort();
  touch(*bytes);
}

void touch(const Program& p, const MethodRecord& m) {
  for (const auto& v : m.values) {
    const auto* const tensor = std::get_if<TensorRecord>(&v);
    if (tensor != nullptr && tensor->data) touch(p, *tensor->data);
  }
  for (const DelegateRecord& d : m.delegates) {
    touch(p, d.blob);
    touch(d.head);
    touch(d.tables);
  }
}

void touch(const Program& p, const graph::Graph& g) {
  for (const auto& v : g.values) {
    const auto* const tensor = std::get_if<graph::Tensor>(&v);
    if (tensor == nullptr) continue;
    for (const ByteRange& part : tensor->data) touch(p, part);
  }
}

Status check_data_file(Bytes file) {
  NamedData named;
  PTERYX_TRY(program::testing::read_data_file(file, "data file", named));
  for (const auto& [key, blob] : named) {
    if (!in_range(blob.data.offset, blob.data.size, file.size())) std::abort();
  }
  return {};
}

Status check_method(const Program& program, const MethodRecord& m) {
  touch(program, m);
  PTERYX_ASSIGN(graph::Graph g, graph::build_graph(program, m, ops::lookup()));
  touch(program, g);
  fuse::PassOptions passes;
  if (g.nodes.size() % 2 == 1) passes.most_constant_bytes = 4096;  // weights in parts
  if (g.nodes.size() % 4 >= 2) passes.precision = Precision::kF16;
  fuse::run_passes(g, ops::lookup(), passes);
  touch(program, g);
  // Every route may be taken: those of a GPU that can do all, and those of one that cannot.
  gpu::Caps caps;
  caps.f16 = caps.subgroups = true;
  caps.subgroup_min = caps.subgroup_max = 32;
  caps.max_buffer_bytes = uint64_t{4} << 30;
  caps.max_binding_bytes = uint64_t{2} << 30;
  gpu::Caps all = caps;
  all.dot4 = all.subgroup_matrix = true;
  all.max_invocations = all.max_workgroup_size_x = 1024;
  all.max_workgroup_bytes = 49152;
  if (const auto layout = make_layout(g, {.caps = all, .precision = Precision::kF16});
      layout.ok()) {
    PTERYX_TRY(check_limits(g, *layout, all));
  }
  auto layout = make_layout(g, {.caps = caps});
  if (!layout.ok()) return std::move(layout).status();
  return check_limits(g, *layout, caps);
}

// Every method, also behind one that is refused.
Status check_program(Bytes file) {
  PTERYX_ASSIGN(const Program program, Program::parse(file));
  Status first;
  for (const MethodRecord& m : program.methods()) {
    Status s = check_method(program, m);
    if (first.ok()) first = std::move(s);
  }
  return first;
}

}  // namespace

Status check(Bytes file) {
  const bool data_file = file.size() >= 8 && std::memcmp(file.data() + 4, "FT01", 4) == 0;
  return data_file ? check_data_file(file) : check_program(file);
}

bool is_refusal(const Status& status) {
  const Code code = status.code();  // kMemory: more than there is
  return (code == Code::kInvalidProgram || code == Code::kUnsupported || code == Code::kMemory) &&
         !status.message().empty();
}

}  // namespace pteryx::fuzz

// What a program holds and how it would run on a device, from its tables alone.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/inspect.h"

#include <utility>
#include <vector>

#include "module.h"

#include "pteryx/program/load.h"
#include "pteryx/program/program.h"

using namespace pteryx;       // NOLINT: all here is exports
using namespace pteryx::web;  // NOLINT

namespace {

struct Inspection {
  program::ProgramLoad load;
  std::string name;
  InspectOptions options;
};

Table<Inspection> inspections;

Result<Handle> begin(Handle device, std::string_view request) {
  PTERYX_ASSIGN(const Json j, parse_json(request, "the request to inspect"));
  PTERYX_ASSIGN(const auto opened, find_device(device));
  PTERYX_ASSIGN(SourcePtr source, read_source(j["source"]));
  PTERYX_ASSIGN(std::vector<SourcePtr> data, read_sources(j["data"]));
  std::string precision;
  take(j, "precision", precision);
  InspectOptions options{.drawing = true, .limits = opened->caps()};
  if (precision == "f16") options.precision = Precision::kF16;
  if (precision == "f32") options.precision = Precision::kF32;
  std::string name = source->name();
  return inspections.add(std::make_unique<Inspection>(
      Inspection{program::ProgramLoad(std::move(source), std::move(data)), std::move(name),
                 std::move(options)}));
}

std::string_view place_name(const Drawing::Node& n) {
  switch (n.kind) {
    case Drawing::Kind::kInput: return "input";
    case Drawing::Kind::kOutput: return "output";
    case Drawing::Kind::kConstant: return "constant";
    case Drawing::Kind::kOperator: break;
  }
  if (n.place == &OperatorUse::gpu) return "gpu";
  if (n.place == &OperatorUse::cpu) return "cpu";
  return n.place == &OperatorUse::free ? "free" : "unsupported";
}

Json graph_of(const Drawing& d) {
  Json nodes = Json::Array();
  for (const Drawing::Node& n : d.nodes)
    nodes.push(Json().set("name", n.name).set("place", place_name(n)).set("shape", n.shape));
  Json edges = Json::Array();
  for (const auto& [from, to] : d.edges) edges.push(Json().push(from).push(to));
  return Json().set("nodes", std::move(nodes)).set("edges", std::move(edges));
}

Json value_of(const Value& v) {
  if (const auto* i = v.integer()) return *i;
  if (const auto* d = v.number()) return *d;
  if (const auto* b = v.flag()) return *b;
  if (const auto* s = v.text()) return *s;
  return {};
}

Json describe_method(const MethodReport& m) {
  Json j = describe(m.info);
  j.set("metadata", m.metadata);
  Json operators = Json::Array();
  for (const OperatorUse& u : m.operators) {
    Json use;
    use.set("name", u.name).set("count", u.count).set("gpu", u.gpu).set("cpu", u.cpu);
    use.set("free", u.free).set("unsupported", u.unsupported);
    operators.push(std::move(use));
  }
  j.set("operators", std::move(operators));
  Json weights = Json::Array();
  for (const Weight& w : m.weights) {
    Json weight;
    weight.set("name", w.name).set("dtype", name(w.dtype)).set("dims", Json::list(w.dims.span()));
    weight.set("bytes", w.bytes).set("state", w.state);
    weights.push(std::move(weight));
  }
  j.set("weights", std::move(weights));
  Json memory;
  memory.set("total", m.memory.gpu_total()).set("constants", m.memory.constants);
  memory.set("state", m.memory.state).set("activations", m.memory.activations);
  memory.set("scratch", m.memory.scratch).set("transfer", m.memory.transfer);
  memory.set("host", m.memory.host);
  j.set("memory", std::move(memory));
  Json excess = Json::Array();
  for (const Excess& e : m.excess) excess.push(to_string(e));
  j.set("excess", std::move(excess));
  j.set("problem", m.problem);
  j.set("graph", graph_of(m.drawing));
  if (m.metadata) {
    Json values = Json::Array();
    for (const Value& v : m.constants) values.push(value_of(v));
    j.set("values", std::move(values));
  }
  return j;
}

}  // namespace

// {"source", "data", "precision"}
PTERYX_EXPORT(inspect_begin)
int32_t export_inspect_begin(Handle device, const char* request, size_t size) {
  const auto handle = begin(device, {request, size});
  return handle.ok() ? give(*handle) : fail(handle.status());
}

// Once done, result() is the report.
PTERYX_EXPORT(inspect_advance) int32_t export_inspect_advance(Handle handle) {
  Inspection* const i = inspections.find(handle);
  if (i == nullptr) return fail_handle("inspection");
  const auto read = i->load.advance();
  if (!read.ok()) return fail(read.status());
  if (!*read) return kLater;
  const program::Program program = i->load.take();
  const auto report = inspect(program, i->name, i->options);
  if (!report.ok()) return fail(report.status());
  Json methods = Json::Array();
  for (const MethodReport& m : report->methods) methods.push(describe_method(m));
  Json j;
  j.set("name", report->path).set("fileBytes", report->file_bytes);
  return give(j.set("methods", std::move(methods)));
}

PTERYX_EXPORT(inspect_free) void export_inspect_free(Handle handle) { inspections.erase(handle); }

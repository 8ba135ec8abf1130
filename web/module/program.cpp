// Programs: load, describe, run. SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "module.h"

#include "pteryx/base/dtype.h"

using namespace pteryx;       // NOLINT: all here is exports
using namespace pteryx::web;  // NOLINT

namespace {

struct WebProgram {
  explicit WebProgram(SessionLoad l) : load(std::move(l)) {}
  std::optional<SessionLoad> load;
  std::optional<Session> session;
  std::vector<Value> inputs;  // of the run under way, in memory of the script's
  std::optional<Run> run;
};

Table<WebProgram> programs;

Result<Handle> load(Handle device, std::string_view request) {
  PTERYX_ASSIGN(const Json j, parse_json(request, "the request to load"));
  PTERYX_ASSIGN(auto opened, find_device(device));
  PTERYX_ASSIGN(SourcePtr source, read_source(j["source"]));
  PTERYX_ASSIGN(std::vector<SourcePtr> data, read_sources(j["data"]));
  PTERYX_ASSIGN(LoadOptions options, read_load_options(j, std::move(opened)));
  return programs.add(std::make_unique<WebProgram>(
      SessionLoad(std::move(source), std::move(data), std::move(options))));
}

// As text, since the numbers of a script have 53 bits.
Result<Value> read_integer(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return invalid_argument(fmt::format("expected a whole number, got '{}'", text));
  return Value(value);
}

// {"kind": "tensor", "dtype", "dims", "data": address, "bytes"} or {"kind": "int", "value"} ...
Result<Value> read_value(const Json& j) {
  std::string kind;
  take(j, "kind", kind);
  const Json& value = j["value"];
  if (kind == "none") return Value();
  if (kind == "tensor") {
    std::string dtype;
    take(j, "dtype", dtype);
    const auto known = dtype_from_name(dtype);
    if (!known) return invalid_argument(fmt::format("there is no element type '{}'", dtype));
    TensorView view{.dtype = *known};
    for (const Json& d : elements(j["dims"])) {
      const auto size = d.integer();
      if (!size || view.dims.rank() == kMaxRank)
        return invalid_argument("a tensor's dims: expected at most 8 numbers");
      view.dims.push_back(*size);
    }
    uintptr_t address = 0;
    take(j, "data", address);
    take(j, "bytes", view.size_bytes);
    view.data = reinterpret_cast<const void*>(address);
    return Value(view);
  }
  if (kind == "int" && value.text() != nullptr) return read_integer(*value.text());
  if (kind == "float" && value.number()) return Value(*value.number());
  if (kind == "bool" && value.flag() != nullptr) return Value(*value.flag());
  if (kind == "string" && value.text() != nullptr) return Value(*value.text());
  return invalid_argument(fmt::format("an input of kind '{}' has no value of it", kind));
}

Status start(WebProgram& p, std::string_view request) {
  PTERYX_ASSIGN(const Json j, parse_json(request, "the request to run"));
  if (!p.session) return invalid_argument("the program is still being loaded");
  if (p.run) return invalid_argument("a run of this program is under way");
  std::string method;
  take(j, "method", method);
  std::vector<Value> inputs;
  for (const Json& i : elements(j["inputs"])) {
    PTERYX_ASSIGN(Value v, read_value(i));
    inputs.push_back(std::move(v));
  }
  p.inputs = std::move(inputs);
  PTERYX_ASSIGN(Run run, p.session->start(method, p.inputs));
  p.run.emplace(std::move(run));
  return {};
}

// JSON has neither infinities nor what is no number: those are text, as scripts read them.
Json float_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

Json describe_output(const Value& v) {
  Json j;
  if (const TensorView* t = v.tensor()) {
    j.set("kind", "tensor");
    j.set("dtype", name(t->dtype));
    j.set("dims", Json::list(t->dims.span()));
    j.set("data", reinterpret_cast<uintptr_t>(t->data));
    j.set("bytes", t->size_bytes);
    return j;
  }
  if (const auto* i = v.integer()) return j.set("kind", "int").set("value", std::to_string(*i));
  if (const auto* d = v.number()) return j.set("kind", "float").set("value", float_json(*d));
  if (const auto* b = v.flag()) return j.set("kind", "bool").set("value", *b);
  if (const auto* s = v.text()) return j.set("kind", "string").set("value", *s);
  return j.set("kind", "none");
}

}  // namespace

// {"source", "data", "precision", ...}: see read_load_options.
PTERYX_EXPORT(program_load)
int32_t export_program_load(Handle device, const char* request, size_t size) {
  const auto handle = load(device, {request, size});
  return handle.ok() ? give(*handle) : fail(handle.status());
}

PTERYX_EXPORT(program_advance) int32_t export_program_advance(Handle handle) {
  WebProgram* const p = programs.find(handle);
  if (p == nullptr) return fail_handle("program");
  if (p->session) return done();
  const auto loaded = p->load->advance();
  if (!loaded.ok()) return fail(loaded.status());
  if (!*loaded) return kLater;
  p->session.emplace(p->load->take());
  p->load.reset();
  return done();
}

PTERYX_EXPORT(program_describe) int32_t export_program_describe(Handle handle) {
  WebProgram* const p = programs.find(handle);
  if (p == nullptr || !p->session) return fail_handle("program");
  Json methods = Json::Array();
  for (const MethodInfo& m : p->session->methods()) methods.push(describe(m));
  return give(Json().set("methods", std::move(methods)));
}

// {"method", "inputs": [...]}; what the inputs' addresses hold stands until the run is finished.
PTERYX_EXPORT(program_start)
int32_t export_program_start(Handle handle, const char* request, size_t size) {
  WebProgram* const p = programs.find(handle);
  if (p == nullptr) return fail_handle("program");
  return give(start(*p, {request, size}));
}

// Once done, result() is {"outputs": [...]}, whose addresses stand until the next run.
PTERYX_EXPORT(program_run_advance) int32_t export_program_run_advance(Handle handle) {
  WebProgram* const p = programs.find(handle);
  if (p == nullptr || !p->run) return fail_handle("run");
  const auto finished = p->run->advance();
  if (finished.ok() && !*finished) return kLater;
  if (!finished.ok()) {
    p->run.reset();
    return fail(finished.status());
  }
  Json outputs = Json::Array();
  for (const Value& v : p->run->outputs()) outputs.push(describe_output(v));
  p->run.reset();
  return give(Json().set("outputs", std::move(outputs)));
}

PTERYX_EXPORT(program_cancel) void export_program_cancel(Handle handle) {
  if (WebProgram* const p = programs.find(handle)) p->run.reset();
}

PTERYX_EXPORT(program_reset) int32_t export_program_reset(Handle handle) {
  WebProgram* const p = programs.find(handle);
  if (p == nullptr || !p->session) return fail_handle("program");
  return give(p->session->reset());
}

PTERYX_EXPORT(program_free) void export_program_free(Handle handle) {
  if (WebProgram* const p = programs.find(handle)) p->run.reset();
  programs.erase(handle);
}

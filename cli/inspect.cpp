// pteryx inspect: what a program holds and how it would run. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/inspect.h"

#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "kernel_folder.h"
#include "limits_file.h"

#include "pteryx/base/output_file.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

struct Options {
  std::string model;
  std::vector<std::string> data_files;
  RunOptions run;  // of the environment alone
  std::string dot;
  std::string kernels;
  std::optional<std::string> limits;
  bool as_json = false;
};

std::string bytes_text(uint64_t bytes) {
  if (bytes >= uint64_t{1} << 30)
    return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
  if (bytes >= 1 << 20) return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= 1 << 10) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / (1 << 10));
  return fmt::format("{} B", bytes);
}

std::string scalar_text(const Value& v) {
  if (const auto* i = v.integer()) return std::to_string(*i);
  if (const auto* d = v.number()) return fmt::format("{}", *d);
  if (const auto* b = v.flag()) return *b ? "true" : "false";
  if (const auto* s = v.text()) return fmt::format("\"{}\"", *s);
  if (const auto* t = v.tensor()) return fmt::format("{} {}", name(t->dtype), to_string(t->dims));
  return "none";
}

// "f32 up to [1, 64, 32]" where a smaller size is allowed.
std::string value_text(const ValueInfo& v) {
  if (v.kind != "tensor") {  // the value, where the program fixes it
    const std::string fixed = scalar_text(v.fixed);
    return fixed == "none" ? v.kind : fmt::format("{} {}", v.kind, fixed);
  }
  return fmt::format("{} {}{}", name(v.dtype), v.dynamic ? "up to " : "", to_string(v.dims));
}

std::string place_text(const OperatorUse& use) {
  std::string text;
  const auto add = [&](uint32_t n, std::string_view where) {
    if (n == 0) return;
    if (!text.empty()) text += ", ";
    text += n == use.count ? std::string(where) : fmt::format("{} {}", n, where);
  };
  add(use.gpu, "GPU");
  add(use.cpu, "CPU");
  add(use.free, "no work");
  add(use.unsupported, "unsupported");
  return text;
}

// Bytes and tensors of each element type.
std::map<std::string, std::pair<size_t, uint64_t>> by_type(const std::vector<Weight>& weights) {
  std::map<std::string, std::pair<size_t, uint64_t>> sums;
  for (const Weight& w : weights) {
    auto& [count, bytes] = sums[std::string(name(w.dtype))];
    ++count;
    bytes += w.bytes;
  }
  return sums;
}

void print_limits(const MethodReport& m) {
  print("\n  limits\n");
  for (const Split& s : m.splits) {
    print("    split in {} parts: {} {} {}, {}\n", s.parts, s.weight.name, name(s.weight.dtype),
          to_string(s.weight.dims), bytes_text(s.weight.bytes));
  }
  for (const Excess& e : m.excess) print("    does not fit: {}\n", to_string(e));
  if (m.excess.empty()) print("    everything fits\n");
}

void print_method(const MethodReport& m, bool limits) {
  print("\nmethod {}\n", m.info.name);
  for (size_t i = 0; i < m.info.inputs.size(); ++i)
    print("  input {}   {}\n", i, value_text(m.info.inputs[i]));
  for (size_t i = 0; i < m.info.outputs.size(); ++i)
    print("  output {}  {}\n", i, value_text(m.info.outputs[i]));
  print("  {} delegate{}, {} nodes\n", m.delegates, m.delegates == 1 ? "" : "s", m.nodes);
  if (!m.operators.empty()) {
    print("\n  {:48} {:>6}  runs on\n", "operator", "count");
    for (const OperatorUse& use : m.operators) {
      print("  {:48} {:>6}  {}\n", use.name, use.count, place_text(use));
    }
  }
  if (!m.weights.empty()) {
    print("\n  weights\n");
    for (const auto& [type, sum] : by_type(m.weights)) {
      print("    {:5} {:>6} tensors  {}\n", type, sum.first, bytes_text(sum.second));
    }
    for (size_t i = 0; i < m.weights.size() && i < 5; ++i) {
      const Weight& w = m.weights[i];
      print("    largest: {} {} {}, {}{}\n", w.name, name(w.dtype), to_string(w.dims),
            bytes_text(w.bytes), w.state ? ", state" : "");
    }
  }
  if (!m.problem.empty()) {
    print("\n  cannot run: {}\n", m.problem);
    return;
  }
  const MemoryNeed& need = m.memory;
  print(
      "\n  peak GPU memory {} (weights {}, state {}, activations {}, temporaries {}, transfers "
      "{}); host {}\n",
      bytes_text(need.gpu_total()), bytes_text(need.constants), bytes_text(need.state),
      bytes_text(need.activations), bytes_text(need.scratch), bytes_text(need.transfer),
      bytes_text(need.host));
  const MemoryNeed& cpu = m.cpu_memory;
  print(
      "  on the CPU      {} (state {}, activations {}, temporaries {}, copies of weights {}); "
      "weights in the file "
      "{}\n",
      bytes_text(cpu.host_total()), bytes_text(cpu.host_state),
      bytes_text(cpu.host - cpu.host_state), bytes_text(cpu.host_scratch), bytes_text(cpu.copied),
      bytes_text(cpu.in_place));
  if (limits) print_limits(m);
}

void print_text(const ProgramReport& r, bool limits) {
  print("{}: {}, {} method{}, {} named blobs\n", r.path, bytes_text(r.file_bytes), r.methods.size(),
        r.methods.size() == 1 ? "" : "s", r.named_data);
  bool metadata = false;
  for (const MethodReport& m : r.methods) {
    metadata = metadata || m.metadata;
    if (!m.metadata) print_method(m, limits);
  }
  if (!metadata) return;
  print("\nmetadata\n");
  for (const MethodReport& m : r.methods) {
    if (!m.metadata) continue;
    std::string values;
    for (const Value& v : m.constants) values += (values.empty() ? "" : ", ") + scalar_text(v);
    print("  {:28} {}\n", m.info.name, values);
  }
}

json scalar_json(const Value& v) {
  if (const auto* i = v.integer()) return *i;
  if (const auto* d = v.number()) return *d;
  if (const auto* b = v.flag()) return *b;
  if (const auto* s = v.text()) return *s;
  return nullptr;
}

json value_json(const ValueInfo& v) {
  if (v.kind != "tensor") return {{"kind", v.kind}, {"value", scalar_json(v.fixed)}};
  json dims = json::array();
  for (const int64_t d : v.dims) {
    dims.push_back({{"min", v.dynamic ? std::min<int64_t>(d, 1) : d}, {"max", d}});
  }
  return {{"kind", "tensor"}, {"dtype", name(v.dtype)}, {"dims", dims}, {"dynamic", v.dynamic}};
}

json weight_json(const Weight& w) {
  return {{"name", w.name},
          {"dtype", name(w.dtype)},
          {"dims", w.dims.span()},
          {"bytes", w.bytes},
          {"state", w.state}};
}

json limits_json(const MethodReport& m) {
  json j = {{"fits", m.problem.empty() && m.excess.empty()},
            {"splits", json::array()},
            {"excess", json::array()}};
  for (const Split& s : m.splits) {
    j["splits"].push_back(weight_json(s.weight));
    j["splits"].back()["parts"] = s.parts;
  }
  for (const Excess& e : m.excess) {
    j["excess"].push_back({{"what", e.what},
                           {"amount", e.amount},
                           {"limit", e.limit},
                           {"allowed", e.allowed},
                           {"remedy", e.remedy}});
  }
  return j;
}

json method_json(const MethodReport& m, bool limits) {
  json j = {{"name", m.info.name},
            {"metadata", m.metadata},
            {"delegates", m.delegates},
            {"nodes", m.nodes}};
  j["inputs"] = json::array();
  j["outputs"] = json::array();
  j["operators"] = json::array();
  j["weights"] = json::array();
  for (const ValueInfo& v : m.info.inputs) j["inputs"].push_back(value_json(v));
  for (const ValueInfo& v : m.info.outputs) j["outputs"].push_back(value_json(v));
  for (const OperatorUse& u : m.operators) {
    j["operators"].push_back({{"name", u.name},
                              {"count", u.count},
                              {"gpu", u.gpu},
                              {"cpu", u.cpu},
                              {"free", u.free},
                              {"unsupported", u.unsupported}});
  }
  for (const Weight& w : m.weights) j["weights"].push_back(weight_json(w));
  j["memory"] = {{"gpu_total", m.memory.gpu_total()},
                 {"constants", m.memory.constants},
                 {"state", m.memory.state},
                 {"activations", m.memory.activations},
                 {"scratch", m.memory.scratch},
                 {"transfer", m.memory.transfer},
                 {"host", m.memory.host}};
  j["cpu_memory"] = {{"total", m.cpu_memory.host_total()},
                     {"state", m.cpu_memory.host_state},
                     {"activations", m.cpu_memory.host - m.cpu_memory.host_state},
                     {"temporaries", m.cpu_memory.host_scratch},
                     {"weights_copied", m.cpu_memory.copied},
                     {"weights_in_place", m.cpu_memory.in_place}};
  if (m.metadata) {
    j["values"] = json::array();
    for (const Value& v : m.constants) j["values"].push_back(scalar_json(v));
  }
  if (limits && !m.metadata) j["limits"] = limits_json(m);
  if (!m.problem.empty()) j["problem"] = m.problem;
  return j;
}

// For a GPU of these limits, or the one that would be used.
Result<std::vector<std::string>> export_kernels(const Options& o,
                                                const std::optional<gpu::Caps>& limits) {
  PTERYX_TRY(check_kernel_folder(o.kernels));
  KernelOptions options{.data_files = o.data_files,
                        .caps = limits.value_or(gpu::Caps()),
                        .precision = o.run.precision,
                        .routes = o.run.routes};
  if (!limits) {
    Progress progress("opening the GPU");
    PTERYX_ASSIGN(const std::shared_ptr<gpu::Device> device, open_gpu(o.run, &progress));
    options.caps = device->caps();
  }
  PTERYX_ASSIGN(const std::vector<KernelText> kernels, list_kernels(o.model, options));
  return write_kernels(o.kernels, kernels);
}

int run(const Options& o) {
  if (const Status s = expect_program(o.model); !s.ok()) return fail(s);
  InspectOptions options{.data_files = o.data_files,
                         .dot = !o.dot.empty(),
                         .precision = o.run.precision,
                         .routes = o.run.routes};
  if (o.limits) {
    auto limits = read_limits(*o.limits);
    if (!limits.ok()) return fail(limits.status());
    options.limits = std::move(limits).value();
  }
  const auto report = inspect(o.model, options);
  if (!report.ok()) return fail(report.status());
  if (!o.dot.empty()) {
    std::vector<std::string> inputs = o.data_files;
    inputs.push_back(o.model);
    if (o.limits && *o.limits != "default") inputs.push_back(*o.limits);
    if (const Status s = check_output(o.dot, inputs); !s.ok()) return fail(s);
    std::string text;
    for (const MethodReport& m : report->methods) {
      if (!m.metadata) text += m.dot;
    }
    if (const Status s = write_file(o.dot, text); !s.ok()) return fail(s);
  }
  std::vector<std::string> files;
  if (!o.kernels.empty()) {
    auto written = export_kernels(o, options.limits);
    if (!written.ok()) return fail(written.status());
    files = std::move(written).value();
  }
  if (o.as_json) {
    json j = {{"path", report->path},
              {"file_bytes", report->file_bytes},
              {"named_data", report->named_data}};
    j["methods"] = json::array();
    for (const MethodReport& m : report->methods)
      j["methods"].push_back(method_json(m, o.limits.has_value()));
    if (!o.kernels.empty()) j["kernels"] = {{"folder", o.kernels}, {"files", files}};
    print_json(j);
  } else {
    print_text(*report, o.limits.has_value());
    if (!o.kernels.empty())
      print("\n{} kernel{} in {}\n", files.size(), files.size() == 1 ? "" : "s", o.kernels);
  }
  return kSuccess;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "inspect", "Show what a program contains and how it would run; needs no GPU");
  sub->add_option("model", o->model, "program (.pte)")->required()->type_name("MODEL.pte");
  add_data_option(*sub, o->data_files);
  sub->add_option("--graph", o->dot, "write the graph in Graphviz' format")->type_name("OUT.dot");
  sub->add_option("--kernels", o->kernels,
                  "write every kernel here as it is compiled, for the GPU that would be used or, "
                  "without opening it, for one of --limits")
      ->type_name("DIR");
  sub->add_option("--limits", o->limits,
                  "say what does not fit a GPU of these limits and what is split for it: WebGPU's "
                  "defaults, or those in a file that `pteryx doctor --json` wrote")
      ->type_name("FILE|default");
  add_json(*sub, o->as_json, "print as JSON");
  read_environment(*sub, o->run);
  sub->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace pteryx::cli

// pteryx run: one call, or a batch of calls on one session. SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "document.h"
#include "interrupt.h"
#include "npy.h"
#include "text.h"

#include "pteryx/base/excerpt.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

struct Options {
  RunOptions run;
  std::string model;
  std::string method = "forward";
  std::vector<std::string> inputs;
  std::string output_dir;
  std::string batch;
  std::string report;
  bool keep_going = false;
  bool as_json = false;

  // Everything that the command reads besides its inputs.
  std::vector<std::string> files() const {
    std::vector<std::string> all = run.data_files;
    all.push_back(model);
    if (!batch.empty()) all.push_back(batch);
    return all;
  }
};

// Inputs of one call; arrays own what the values point at.
struct Arguments {
  std::vector<std::unique_ptr<Array>> arrays;
  std::vector<Value> values;
  std::vector<std::string> files;

  Status add_file(const std::string& path) {
    PTERYX_ASSIGN(Array a, read_npy(path));
    files.push_back(path);
    arrays.push_back(std::make_unique<Array>(std::move(a)));
    values.emplace_back(arrays.back()->view());
    return {};
  }

  // A .npy file, true, false, none, an integer or a number.
  Status add(const std::string& text) {
    if (text.ends_with(".npy")) return add_file(text);
    if (text == "true" || text == "false") {
      values.emplace_back(text == "true");
      return {};
    }
    if (text == "none") {
      values.emplace_back();
      return {};
    }
    int64_t i = 0;
    const char* end = text.data() + text.size();
    if (const auto r = std::from_chars(text.data(), end, i); r.ec == std::errc() && r.ptr == end) {
      values.emplace_back(i);
      return {};
    }
    double d = 0;
    if (const auto r = std::from_chars(text.data(), end, d); r.ec == std::errc() && r.ptr == end) {
      values.emplace_back(d);
      return {};
    }
    return invalid_argument(fmt::format(
        "input '{}': expected a .npy file, a number, true, false or none", excerpt(text)));
  }
};

std::string describe(const Value& v) {
  if (const auto* t = v.tensor()) return fmt::format("{} {}", name(t->dtype), to_string(t->dims));
  if (const auto* i = v.integer()) return std::to_string(*i);
  if (const auto* d = v.number()) return fmt::format("{}", *d);
  if (const auto* b = v.flag()) return *b ? "true" : "false";
  if (const auto* s = v.text()) return *s;
  return "none";
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// A scalar output becomes a 0-d array. Nothing that was read is written over.
Status write_output(const std::string& path, const Value& v, const Options& o,
                    const Arguments& arguments) {
  PTERYX_TRY(check_output(path, o.files()));
  PTERYX_TRY(check_output(path, arguments.files));
  if (const auto* t = v.tensor()) return write_npy(path, *t);
  if (const auto* i = v.integer()) return write_npy(path, tensor<int64_t>({}, std::span(i, 1)));
  if (const auto* d = v.number()) return write_npy(path, tensor<double>({}, std::span(d, 1)));
  if (const bool* b = v.flag(); b != nullptr) {
    const bool value = *b;
    return write_npy(path, tensor<bool>({}, std::span(&value, 1)));
  }
  return unsupported(fmt::format("{}: the output is neither a tensor nor a number", path));
}

json output_json(const Value& v, const std::string& path) {
  json j;
  if (const auto* t = v.tensor()) {
    j = {{"dtype", name(t->dtype)}, {"shape", t->dims.span()}};
  } else if (const auto* i = v.integer()) {
    j = {{"value", *i}};
  } else if (const auto* d = v.number()) {
    j = {{"value", *d}};
  } else if (const auto* b = v.flag()) {
    j = {{"value", *b}};
  } else {
    j = {{"value", v.text() != nullptr ? json(*v.text()) : json()}};
  }
  if (!path.empty()) j["path"] = path;
  return j;
}

Status make_folder(const std::string& folder) {
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (!error) return {};
  return io_error(fmt::format("cannot create {}: {}", folder, error.message()));
}

Status run_once(Session& session, const Options& o) {
  Arguments arguments;
  for (const std::string& text : o.inputs) PTERYX_TRY(arguments.add(text));
  const auto start = std::chrono::steady_clock::now();
  PTERYX_ASSIGN(const auto outputs, session.run(o.method, arguments.values));
  const double ms = milliseconds_since(start);
  PTERYX_TRY(make_folder(o.output_dir));
  json list = json::array();
  std::string text;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string path = o.output_dir.empty() ? "" : fmt::format("{}/{}.npy", o.output_dir, i);
    if (!path.empty()) PTERYX_TRY(write_output(path, outputs[i], o, arguments));
    list.push_back(output_json(outputs[i], path));
    text += fmt::format("output {}: {}{}{}\n", i, describe(outputs[i]), path.empty() ? "" : " -> ",
                        path);
  }
  const gpu::Caps& caps = session.device()->caps();
  if (o.as_json) {
    print_json(
        {{"method", o.method}, {"outputs", list}, {"ms", ms}, {device_key(caps), caps.adapter}});
  } else {
    print("{}{}: {:.3f} ms on {}\n", text, o.method, ms, caps.adapter);
  }
  return {};
}

// A member of a call, of that type; `otherwise` where there is none.
Result<json> member(const json& call, const char* key, json otherwise) {
  const auto at = call.find(key);
  if (at == call.end()) return otherwise;
  if (at->type() == otherwise.type()) return *at;
  return invalid_argument(
      fmt::format("{}: expected {}, got {}", key, otherwise.type_name(), at->type_name()));
}

// One line: {"method": "forward", "inputs": ["x.npy", 3], "outputs": ["y.npy"]}
Status run_call(Session& session, const Options& o, const json& call, json& result) {
  if (!call.is_object()) return invalid_argument("expected a JSON object");
  PTERYX_ASSIGN(const json method_name, member(call, "method", "forward"));
  PTERYX_ASSIGN(const json inputs, member(call, "inputs", json::array()));
  PTERYX_ASSIGN(const json names, member(call, "outputs", json::array()));
  const auto method = method_name.get<std::string>();
  Arguments arguments;
  for (const json& input : inputs) {
    if (input.is_string())
      PTERYX_TRY(arguments.add(input.get<std::string>()));
    else if (input.is_boolean())
      arguments.values.emplace_back(input.get<bool>());
    else if (input.is_number_integer())
      arguments.values.emplace_back(input.get<int64_t>());
    else if (input.is_number())
      arguments.values.emplace_back(input.get<double>());
    else if (input.is_null())
      arguments.values.emplace_back();
    else
      return invalid_argument(fmt::format("inputs[{}]: expected a file name or a number, got {}",
                                          arguments.values.size(), input.type_name()));
  }
  for (const json& n : names) {
    if (!n.is_string() && !n.is_null())
      return invalid_argument(fmt::format("outputs: expected file names, got {}", n.type_name()));
  }
  const auto start = std::chrono::steady_clock::now();
  PTERYX_ASSIGN(const auto outputs, session.run(method, arguments.values));
  const double ms = milliseconds_since(start);
  if (names.size() > outputs.size()) {
    return invalid_argument(fmt::format("outputs: expected at most {} file names, got {}",
                                        outputs.size(), names.size()));
  }
  result["outputs"] = json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < names.size() && names[i].is_string())
      PTERYX_TRY(write_output(names[i].get<std::string>(), outputs[i], o, arguments));
    result["outputs"].push_back(describe(outputs[i]));
  }
  result["ms"] = ms;
  return {};
}

// The line's own report; ones of failed calls have "error" and "code".
json run_line(Session& session, const Options& o, std::string_view line, size_t number) {
  json result = {{"line", number}};
  auto call = read_document(line, "the call");
  const Status s = call.ok() ? run_call(session, o, *call, result) : std::move(call).status();
  if (s.ok()) return result;
  note("pteryx: {} line {}: {}\n", o.batch, number, printable(s.message()));
  return {{"line", number}, {"error", printable(s.message())}, {"code", name(s.code())}};
}

// Every file that some call of a batch reads.
std::vector<std::string> files_of(std::string_view calls) {
  std::vector<std::string> files;
  for (size_t at = 0; at < calls.size();) {
    const size_t end = std::min(calls.find('\n', at), calls.size());
    const auto call = read_document(calls.substr(at, end - at), "the call");
    at = end + 1;
    if (!call.ok() || !call->is_object() || !call->contains("inputs")) continue;
    for (const json& input : (*call)["inputs"]) {
      if (input.is_string()) files.push_back(input.get<std::string>());
    }
  }
  return files;
}

Status cannot_write(const std::string& path) {
  return io_error(fmt::format("cannot write {}: {}", path, std::generic_category().message(errno)));
}

Result<int> run_batch(Session& session, const Options& o) {
  PTERYX_ASSIGN(const std::string text, read_text(o.batch));
  std::ofstream report;  // line by line: somebody may be following it
  if (!o.report.empty()) {
    PTERYX_TRY(check_output(o.report, o.files()));
    PTERYX_TRY(check_output(o.report, files_of(text)));
    report.open(o.report);
    if (!report) return cannot_write(o.report);
  }
  size_t number = 0;
  size_t ran = 0;
  json list = json::array();
  bool failed = false;
  for (size_t at = 0; at < text.size() && !(failed && !o.keep_going);) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    PTERYX_TRY(InterruptGuard::check());
    const json result = run_line(session, o, line, number);
    const bool ok = !result.contains("error");
    ran += ok ? 1 : 0;
    failed = failed || !ok;
    if (report.is_open()) {
      report << result.dump(-1, ' ', false, json::error_handler_t::replace) << '\n' << std::flush;
      if (!report) return cannot_write(o.report);
    }
    if (o.as_json) list.push_back(result);
  }
  const gpu::Caps& caps = session.device()->caps();
  if (o.as_json) {
    print_json({{"calls", list}, {"ran", ran}, {device_key(caps), caps.adapter}});
  } else {
    print("{} calls ran on {}\n", ran, caps.adapter);
  }
  return static_cast<int>(failed ? kFailed : kSuccess);
}

int run(const Options& o) {
  const InterruptGuard guard;
  if (const Status s = expect_program(o.model); !s.ok()) return fail(s);
  Progress progress("opening " + o.model);
  const auto device = open_device(o.run, &progress);
  if (!device.ok()) return fail(device.status());
  LoadOptions options = load_options(o.run, *device, &progress);
  if (o.batch.empty()) options.methods = {o.method};
  auto session = Session::load(o.model, options);
  progress.end();
  if (!session.ok()) return fail(session.status());
  if (o.batch.empty()) {
    const Status s = run_once(*session, o);
    return s.ok() ? static_cast<int>(kSuccess) : fail(s);
  }
  const auto exit = run_batch(*session, o);
  return exit.ok() ? *exit : fail(exit.status());
}

// What can be an input; a model never is.
bool is_input(std::string_view word) {
  const auto one = [](std::string_view w) {
    return w.ends_with(".npy") || w == "true" || w == "false" || w == "none" ||
           parse_number<double>(w).has_value();
  };
  for (size_t at = 0; at <= word.size();) {
    const size_t end = std::min(word.find(',', at), word.size());
    if (!one(word.substr(at, end - at))) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("run", "Run a method of a program on .npy files and numbers");
  sub->add_option("model", o->model, "program (.pte)")->required()->type_name("MODEL.pte");
  sub->add_option("-m,--method", o->method, "method to run")
      ->capture_default_str()
      ->type_name("NAME");
  add_words(*sub, "-i,--input", o->inputs, is_input,
            "inputs in order: .npy files, numbers, true, false, none")
      ->type_name("X,...");
  auto* folder = sub->add_option("-o,--output-dir", o->output_dir,
                                 "write the outputs here as 0.npy, 1.npy, ...")
                     ->type_name("DIR");
  auto* batch = sub->add_option("--batch", o->batch,
                                "run the calls in this file, one JSON object per line; -: stdin")
                    ->type_name("CALLS.jsonl")
                    ->excludes(folder)
                    ->excludes(sub->get_option("--input"));
  sub->add_option("--report", o->report, "with --batch: write one JSON line per call")
      ->type_name("OUT.jsonl")
      ->needs(batch);
  sub->add_flag("--keep-going", o->keep_going, "with --batch: continue after a failed call")
      ->needs(batch);
  add_json(*sub, o->as_json, "print the results as JSON");
  add_run_options(*sub, o->run);
  sub->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace pteryx::cli

// pteryx run: one call, or a batch of calls on one session. SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "npy.h"

#include "pteryx/base/file.h"

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
};

// Inputs of one call; arrays own what the values point at.
struct Arguments {
  std::vector<std::unique_ptr<Array>> arrays;
  std::vector<Value> values;

  Status add_file(const std::string& path) {
    PTERYX_ASSIGN(Array a, read_npy(path));
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
    return invalid_argument(
        fmt::format("input '{}' is neither a .npy file nor a number, true, false or none", text));
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

// A scalar output becomes a 0-d array.
Status write_output(const std::string& path, const Value& v) {
  if (const auto* t = v.tensor()) return write_npy(path, *t);
  if (const auto* i = v.integer()) return write_npy(path, tensor<int64_t>({}, std::span(i, 1)));
  if (const auto* d = v.number()) return write_npy(path, tensor<double>({}, std::span(d, 1)));
  if (const bool* b = v.flag(); b != nullptr) {
    const bool value = *b;
    return write_npy(path, tensor<bool>({}, std::span(&value, 1)));
  }
  return unsupported("output is neither a tensor nor a number");
}

int run_once(Session& session, const Options& o) {
  Arguments arguments;
  for (const std::string& text : o.inputs) {
    if (const Status s = arguments.add(text); !s.ok())
      return fail(s, s.code() == Code::kIo ? kBadFile : kFailed);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto outputs = session.run(o.method, arguments.values);
  if (!outputs.ok()) return fail(outputs.status(), kFailed);
  const double ms = milliseconds_since(start);
  std::error_code error;
  if (!o.output_dir.empty()) std::filesystem::create_directories(o.output_dir, error);
  if (error)
    return fail(io_error(fmt::format("cannot make {}: {}", o.output_dir, error.message())),
                kFailed);
  for (size_t i = 0; i < outputs->size(); ++i) {
    const std::string path = o.output_dir.empty() ? "" : fmt::format("{}/{}.npy", o.output_dir, i);
    if (!path.empty()) {
      if (const Status s = write_output(path, (*outputs)[i]); !s.ok()) return fail(s, kFailed);
    }
    fmt::print("output {}: {}{}{}\n", i, describe((*outputs)[i]), path.empty() ? "" : " -> ", path);
  }
  fmt::print("{}: {:.3f} ms on {}\n", o.method, ms, session.device()->caps().adapter);
  return kSuccess;
}

// One line: {"method": "forward", "inputs": ["x.npy", 3], "outputs": ["y.npy"]}
Status run_call(Session& session, const json& call, json& result) {
  if (!call.is_object()) return invalid_argument("expected a JSON object");
  const std::string method = call.value("method", "forward");
  Arguments arguments;
  for (const json& input : call.value("inputs", json::array())) {
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
      return invalid_argument(
          fmt::format("input {} is neither a file name nor a number", input.dump()));
  }
  const auto start = std::chrono::steady_clock::now();
  PTERYX_ASSIGN(const auto outputs, session.run(method, arguments.values));
  const double ms = milliseconds_since(start);
  const json names = call.value("outputs", json::array());
  if (names.size() > outputs.size()) {
    return invalid_argument(fmt::format("{} output files are named, the method has {} outputs",
                                        names.size(), outputs.size()));
  }
  result["outputs"] = json::array();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < names.size() && names[i].is_string())
      PTERYX_TRY(write_output(names[i].get<std::string>(), outputs[i]));
    result["outputs"].push_back(describe(outputs[i]));
  }
  result["ms"] = ms;
  return {};
}

int run_batch(Session& session, const Options& o) {
  const auto file = MappedFile::open(o.batch);
  if (!file.ok()) return fail(file.status(), kBadFile);
  const Bytes bytes = (*file)->bytes();
  std::istringstream calls(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::ofstream report;
  if (!o.report.empty()) {
    report.open(o.report);
    if (!report) return fail(io_error(fmt::format("cannot write {}", o.report)), kFailed);
  }
  int exit = kSuccess;
  std::string line;
  size_t number = 0;
  size_t ran = 0;
  while (std::getline(calls, line)) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    json result = {{"line", number}};
    const json call = json::parse(line, nullptr, false);
    Status s;
    try {
      s = call.is_discarded() ? invalid_argument("not valid JSON")
                              : run_call(session, call, result);
    } catch (const json::exception& e) {
      s = invalid_argument(e.what());
    }
    if (!s.ok()) {
      result = {{"line", number},
                {"error", std::string(s.message())},
                {"code", std::string(name(s.code()))}};
      exit = kFailed;
      fmt::print(stderr, "pteryx: {} line {}: {}\n", o.batch, number, s.message());
    } else {
      ++ran;
    }
    if (report.is_open())
      report << result.dump(-1, ' ', false, json::error_handler_t::replace) << "\n" << std::flush;
    if (!s.ok() && !o.keep_going) break;
  }
  fmt::print("{} calls ran on {}\n", ran, session.device()->caps().adapter);
  return exit;
}

int run(const Options& o) {
  const auto device = open(o.run);
  if (!device.ok()) return fail(device.status(), kNoGpu);
  LoadOptions options = load_options(o.run, *device);
  if (o.batch.empty()) options.methods = {o.method};
  auto session = Session::load(o.model, options);
  if (!session.ok()) return fail(session.status(), load_exit(session.status()));
  return o.batch.empty() ? run_once(*session, o) : run_batch(*session, o);
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("run", "Run a method of a program on .npy inputs");
  sub->add_option("model", o->model, "program (.pte)")->required()->type_name("MODEL.pte");
  sub->add_option("--method,-m", o->method, "method to run")->capture_default_str();
  sub->add_option("--input,-i", o->inputs, "a .npy file or a number; one per input, in order")
      ->type_name("X");
  sub->add_option("--output-dir,-o", o->output_dir, "write outputs here as 0.npy, 1.npy, ...")
      ->type_name("DIR");
  auto* batch = sub->add_option("--batch", o->batch,
                                "run the calls of this file, one JSON object a line, in order");
  sub->add_option("--report", o->report, "with --batch: write one JSON line per call")
      ->needs(batch);
  sub->add_flag("--keep-going", o->keep_going, "with --batch: go on after a failed call")
      ->needs(batch);
  add_run_options(*sub, o->run);
  sub->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace pteryx::cli

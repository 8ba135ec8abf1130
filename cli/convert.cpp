// pteryx convert and pteryx synth: programs from weights, and from nothing.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/convert.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"

namespace pteryx::cli {
namespace {

using convert::ConvertOptions;
using convert::ConvertReport;
using convert::Quantize;
using nlohmann::json;

const std::map<std::string, Quantize> kQuantize = {{"auto", Quantize::kAuto},
                                                   {"none", Quantize::kNone},
                                                   {"f16", Quantize::kF16},
                                                   {"q8", Quantize::kQ8},
                                                   {"q4", Quantize::kQ4}};
const std::map<std::string, DType> kCacheTypes = {{"f32", DType::kF32}, {"f16", DType::kF16}};

struct Options {
  std::string source;
  std::string output;
  ConvertOptions convert;
  convert::SynthOptions synth;
  std::string architecture;
  bool as_json = false;
};

void add_common(CLI::App& sub, Options& o) {
  sub.add_option("-o,--output", o.output, "program to write")->required()->type_name("MODEL.pte");
  sub.add_option("--group-size", o.convert.group_size, "elements that share a 4-bit scale")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  sub.add_option("--max-context", o.convert.max_context,
                 fmt::format("tokens a conversation may have (the model's own, at most {})",
                             convert::kUsualContext))
      ->check(CLI::PositiveNumber);
  sub.add_option("--max-tokens", o.convert.max_tokens, "tokens one call may take")
      ->capture_default_str()
      ->check(CLI::Range(2, 1 << 20));
  sub.add_option("--kv", o.convert.kv_type, "type of the KV cache: f32 or f16")
      ->transform(CLI::Transformer(kCacheTypes).description(""))
      ->type_name("TYPE");
  sub.add_flag("--json", o.as_json, "print the report as JSON");
}

volatile std::sig_atomic_t interrupted = 0;

// Percentages after a second, if there is somebody to read them; stops when the user does, so that
// no half of a file stays.
convert::Progress progress() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { interrupted = 1; });
  const auto start = std::chrono::steady_clock::now();
  return [start, last = uint64_t{0}](uint64_t done, uint64_t total) mutable {
    if (interrupted != 0) return false;
    if (isatty(STDERR_FILENO) == 0) return true;
    const uint64_t percent = done * 100 / std::max<uint64_t>(total, 1);
    if (percent == last || std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) {
      return true;
    }
    last = percent;
    fmt::print(stderr, "\r\033[K{}", percent < 100 ? fmt::format("writing {} %", percent) : "");
    std::fflush(stderr);
    return true;
  };
}

// The same kind of tensor in every layer is one line.
struct Line {
  std::string target;
  size_t count = 0;
  uint64_t bytes = 0;
  double worst = 0;
};

void print_text(const ConvertReport& r, const std::string& path) {
  fmt::print("{:44} {:>16} {:>7} {:>8} {:>12}  {}\n", "tensor", "shape", "source", "target",
             "bytes", "error");
  std::map<std::string, Line> sums;
  for (const convert::TensorReport& t : r.tensors) {
    fmt::print("{:44} {:>16} {:>7} {:>8} {:>12}  {:.3f} %\n", t.name, to_string(t.dims), t.source,
               t.target, t.bytes, t.error * 100);
    Line& line = sums[t.source + " to " + t.target];
    ++line.count;
    line.bytes += t.bytes;
    line.worst = std::max(line.worst, t.error);
  }
  fmt::print("\n");
  for (const auto& [what, line] : sums) {
    fmt::print("{:20} {:>5} tensors {:>12} bytes, error at most {:.3f} %\n", what, line.count,
               line.bytes, line.worst * 100);
  }
  fmt::print("{}: {} bytes, context {}, {} tokens a call\n", path, r.file_bytes, r.max_context,
             r.max_tokens);
}

json report_json(const ConvertReport& r, const std::string& path) {
  json j = {{"path", path},
            {"file_bytes", r.file_bytes},
            {"architecture", r.shape.architecture},
            {"max_context", r.max_context},
            {"max_tokens", r.max_tokens}};
  j["tensors"] = json::array();
  for (const convert::TensorReport& t : r.tensors) {
    j["tensors"].push_back({{"name", t.name},
                            {"shape", t.dims.span()},
                            {"source", t.source},
                            {"target", t.target},
                            {"bytes", t.bytes},
                            {"error", t.error}});
  }
  return j;
}

int finish(const Result<ConvertReport>& report, const Options& o) {
  if (!report.ok()) {
    const bool usage = report.status().code() == Code::kInvalidArgument;
    return fail(report.status(), usage ? kUsage : load_exit(report.status()));
  }
  if (o.as_json) {
    fmt::print("{}\n",
               report_json(*report, o.output).dump(2, ' ', false, json::error_handler_t::replace));
  } else {
    print_text(*report, o.output);
  }
  return kSuccess;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "convert", "Make a program of a GGUF file, a Hugging Face folder or a llama2.c checkpoint");
  sub->add_option("source", o->source, "model.gguf, a folder with config.json, or model.bin")
      ->required()
      ->type_name("SOURCE");
  add_common(*sub, *o);
  sub->add_option("--quantize", o->convert.quantize,
                  fmt::format("auto: keep 4-bit sources, else the smallest format with less than "
                              "{:.0f} % error; none (f32), f16, q8, q4",
                              convert::kErrorBound * 100))
      ->transform(CLI::Transformer(kQuantize).description(""))
      ->type_name("KIND");
  sub->add_option("--tokenizer", o->convert.tokenizer,
                  "tokenizer to put in instead of the source's")
      ->type_name("FILE");
  sub->callback([o, &action] {
    action = [o] {
      o->convert.progress = progress();
      return finish(convert::convert(o->source, o->output, o->convert), *o);
    };
  });
}

void add_synth(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  o->convert.quantize = Quantize::kQ4;
  CLI::App* sub =
      app.add_subcommand("synth", "Make a program of a known shape with random weights");
  add_common(*sub, *o);
  sub->add_option("--arch", o->architecture, "architecture the preset must have")
      ->check(CLI::IsMember({"llama", "qwen3"}));
  sub->add_option("--preset", o->synth.preset,
                  fmt::format("{}", fmt::join(convert::synth_presets(), ", ")))
      ->capture_default_str()
      ->check(CLI::IsMember(convert::synth_presets()));
  sub->add_option("--quantize", o->convert.quantize, "q4, q8, f16 or none (f32)")
      ->transform(CLI::Transformer(kQuantize).description(""))
      ->type_name("KIND");
  sub->add_option("--seed", o->synth.seed, "other weights for other numbers")
      ->capture_default_str();
  sub->callback([o, &action] {
    action = [o] {
      o->synth.convert = o->convert;
      o->synth.convert.progress = progress();
      const bool qwen = o->synth.preset.starts_with("qwen");
      if (!o->architecture.empty() && (o->architecture == "qwen3") != qwen) {
        return fail(invalid_argument(fmt::format("preset '{}' is not of architecture '{}'",
                                                 o->synth.preset, o->architecture)),
                    kUsage);
      }
      return finish(convert::synth(o->output, o->synth), *o);
    };
  });
}

}  // namespace pteryx::cli

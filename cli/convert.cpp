// pteryx convert and pteryx synth: programs from weights, and from nothing.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/convert.h"

#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "interrupt.h"

namespace pteryx::cli {
namespace {

using convert::ConvertOptions;
using convert::ConvertReport;
using convert::Quantize;
using nlohmann::json;

const Choices<Quantize> kQuantize = {{"q4", Quantize::kQ4},
                                     {"q8", Quantize::kQ8},
                                     {"f16", Quantize::kF16},
                                     {"none", Quantize::kNone}};

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
  add_number<int64_t>(sub, "--group-size", o.convert.group_size, {1, 65536},
                      "elements that share a 4-bit scale");
  add_number<int64_t>(sub, "--max-context", o.convert.max_context, {0, 1 << 24},
                      fmt::format("tokens that the KV cache holds; 0: as many as the model was "
                                  "trained for, at most {}",
                                  convert::kUsualContext));
  add_number<int64_t>(sub, "--max-tokens", o.convert.max_tokens, {2, 1 << 20},
                      "tokens of a prompt that are computed at once, at most");
  add_choice(sub, "--kv", o.convert.kv_type, {{"f32", DType::kF32}, {"f16", DType::kF16}},
             "element type of the KV cache")
      ->default_str("f32");
  add_threads_option(sub, o.convert.threads);
  add_json(sub, o.as_json, "print the report as JSON");
}

// The same kind of tensor in every layer is one line.
struct Line {
  std::string target;
  size_t count = 0;
  uint64_t bytes = 0;
  double worst = 0;
};

void print_text(const ConvertReport& r, const std::string& path) {
  print("{:44} {:>16} {:>7} {:>8} {:>12}  {}\n", "tensor", "shape", "source", "target", "bytes",
        "error");
  std::map<std::string, Line> sums;
  for (const convert::TensorReport& t : r.tensors) {
    print("{:44} {:>16} {:>7} {:>8} {:>12}  {:.3f} %\n", t.name, to_string(t.dims), t.source,
          t.target, t.bytes, t.error * 100);
    Line& line = sums[t.source + " to " + t.target];
    ++line.count;
    line.bytes += t.bytes;
    line.worst = std::max(line.worst, t.error);
  }
  print("\n");
  for (const auto& [what, line] : sums) {
    print("{:20} {:>5} tensors {:>12} bytes, error at most {:.3f} %\n", what, line.count,
          line.bytes, line.worst * 100);
  }
  print("{}: {} bytes, context {}, {} tokens a call\n", path, r.file_bytes, r.max_context,
        r.max_tokens);
}

json report_json(const ConvertReport& r, const std::string& path) {
  json j = {{"path", path},
            {"file_bytes", r.file_bytes},
            {"architecture", r.shape.architecture},
            {"max_context", r.max_context},
            {"max_tokens", r.max_tokens},
            {"warnings", r.warnings}};
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

int finish_report(const Result<ConvertReport>& report, const Options& o) {
  if (!report.ok()) return fail(report.status());
  for (const std::string& w : report->warnings) note("pteryx: {}\n", printable(w));
  if (o.as_json) {
    print_json(report_json(*report, o.output));
  } else {
    print_text(*report, o.output);
  }
  return kSuccess;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "convert", "Convert a GGUF file, Hugging Face folder or llama2.c checkpoint to a program");
  sub->add_option("source", o->source, "GGUF file, folder with config.json, or llama2.c checkpoint")
      ->required()
      ->type_name("SOURCE");
  add_common(*sub, *o);
  Choices<Quantize> choices = {{"auto", Quantize::kAuto}};
  choices.insert(choices.end(), kQuantize.begin(), kQuantize.end());
  add_choice(*sub, "--quantize", o->convert.quantize, choices,
             fmt::format("format of the weights; auto keeps 4-bit weights as they are and gives "
                         "others the smallest format with an error below {:.0f} %; none is f32",
                         convert::kErrorBound * 100))
      ->default_str("auto");
  sub->add_option("--tokenizer", o->convert.tokenizer,
                  "tokenizer to include instead of the source's own")
      ->type_name("FILE");
  sub->callback([o, &action] {
    action = [o] {
      const InterruptGuard guard;
      Progress progress("converting " + o->source);
      o->convert.progress = follow(progress);
      const auto report = convert::convert(o->source, o->output, o->convert);
      progress.end();
      return finish_report(report, *o);
    };
  });
}

void add_synth(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  o->convert.quantize = Quantize::kQ4;
  CLI::App* sub = app.add_subcommand(
      "synth", "Write a program of a known shape with random weights, for benchmarks");
  add_common(*sub, *o);
  add_choice(*sub, "--arch", o->architecture, {{"llama", "llama"}, {"qwen3", "qwen3"}},
             "architecture that the preset must have");
  Choices<std::string> presets;
  for (const std::string& p : convert::synth_presets()) presets.emplace_back(p, p);
  add_choice(*sub, "--preset", o->synth.preset, presets, "shape of the model")
      ->default_str(o->synth.preset);
  add_choice(*sub, "--quantize", o->convert.quantize, kQuantize,
             "format of the weights; none is f32")
      ->default_str("q4");
  add_number<uint64_t>(*sub, "--seed", o->synth.seed, {0, std::numeric_limits<uint64_t>::max()},
                       "seed of the random weights");
  sub->callback([o, &action] {
    action = [o] {
      const bool qwen = o->synth.preset.starts_with("qwen");
      if (!o->architecture.empty() && (o->architecture == "qwen3") != qwen) {
        return fail(invalid_argument(fmt::format("preset '{}' is not of architecture '{}'",
                                                 o->synth.preset, o->architecture)));
      }
      const InterruptGuard guard;
      Progress progress("writing " + o->output);
      o->synth.convert = o->convert;
      o->synth.convert.progress = follow(progress);
      const auto report = convert::synth(o->output, o->synth);
      progress.end();
      return finish_report(report, *o);
    };
  });
}

}  // namespace pteryx::cli

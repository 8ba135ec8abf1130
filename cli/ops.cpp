// pteryx ops: the operators Pteryx runs, as a table. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.h"

#include "pteryx/ops/table.h"

namespace pteryx::cli {
namespace {

using nlohmann::json;

std::string where(const ops::OpDef& def) {
  if (def.op_class == ops::OpClass::kView) return "no work";
  if (def.op_class != ops::OpClass::kCompute) return "host scalar";
  if (def.plan != nullptr && def.cpu != nullptr) return "GPU, CPU";
  return def.plan != nullptr ? "GPU" : "CPU";
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& p : parts) text += (text.empty() ? "" : ", ") + p;
  return text;
}

std::vector<std::string> spellings(const ops::OpDef& def) {
  std::vector<std::string> list;
  for (const std::string_view s : def.spellings) {
    if (!s.empty()) list.emplace_back(s);
  }
  return list;
}

std::vector<std::string> arguments(const ops::OpDef& def) {
  std::vector<std::string> list;
  for (const ops::Arg& a : def.args) {
    const bool result = a.kind == ops::ArgKind::kOut || a.kind == ops::ArgKind::kOutList ||
                        a.kind == ops::ArgKind::kOutScalar;
    list.push_back(fmt::format("{}{}{}", result ? "→ " : "", a.name, a.optional ? "?" : ""));
  }
  return list;
}

std::vector<std::string> routes(const ops::OpDef& def) {
  std::vector<std::string> list;
  for (const ops::Route& r : def.routes) {  // one may stand there twice, first where it suits best
    std::string route = fmt::format("{}:{}", def.family, r.name);
    if (std::find(list.begin(), list.end(), route) == list.end()) list.push_back(std::move(route));
  }
  return list;
}

int run(bool as_json, bool as_markdown) {
  if (as_json) {
    json list = json::array();
    for (const ops::OpDef& def : ops::all_ops()) {
      list.push_back({{"name", def.name},
                      {"spellings", spellings(def)},
                      {"arguments", arguments(def)},
                      {"runs_on", where(def)},
                      {"routes", routes(def)}});
    }
    print_json(list);
    return kSuccess;
  }
  if (as_markdown) {
    print(
        "# Operators\n\nMade by `pteryx ops --markdown`; do not edit. {} operators. \"GPU, CPU\" "
        "means the GPU for "
        "bool, u8, i8, i32, f16 and\nf32 tensors and the CPU for other types. A `?` marks an "
        "argument that may be "
        "None, `→` the result.\n\n| operator | also spelled | arguments | runs on | routes "
        "|\n|---|---|---|---|---|\n",
        ops::all_ops().size());
    for (const ops::OpDef& def : ops::all_ops()) {
      print("| `{}` | {} | {} | {} | {} |\n", def.name, join(spellings(def)), join(arguments(def)),
            where(def), join(routes(def)));
    }
    return kSuccess;
  }
  for (const ops::OpDef& def : ops::all_ops()) print("{:56} {}\n", def.name, where(def));
  return kSuccess;
}

}  // namespace

void add_ops(CLI::App& app, Action& action) {
  struct Flags {
    bool as_json = false;
    bool as_markdown = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* sub = app.add_subcommand("ops", "List the operators Pteryx runs, and on what");
  add_json(*sub, flags->as_json, "print as JSON");
  sub->add_flag("--markdown", flags->as_markdown, "print as Markdown (docs/ops.md)")
      ->excludes(sub->get_option("--json"));
  sub->callback(
      [flags, &action] { action = [flags] { return run(flags->as_json, flags->as_markdown); }; });
}

}  // namespace pteryx::cli

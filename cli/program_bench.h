// Measurements of programs that are no language models, and what tells them apart.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "model.h"

namespace pteryx::cli {

// Whether a model is measured by tokens: a program whose methods are those of a language model, and
// whatever is converted first. What cannot be read is, so that opening it says why.
bool runs_as_language_model(const ModelArguments& a);

// Errors: kInvalidArgument where options about tokens were given for something else.
Status refuse_token_options(bool given, const std::string& path);

// --method and --shape.
void add_measured_method(CLI::App& app, std::string& method, std::vector<std::string>& shapes);

struct ProgramArguments {
  RunOptions run;
  std::string path;
  std::string method;  // "": all
  std::vector<std::string> shapes;
  int repeats = 5;
  bool as_json = false;
};

struct OpenedProgram {
  Session session;
  std::shared_ptr<gpu::Device> device;
  double load_ms = 0;
};
Result<OpenedProgram> open_measured(const ProgramArguments& a, Progress& progress);

// Whole calls, from host memory to host memory; prints them.
int bench_program(const ProgramArguments& a, Progress& progress);

}  // namespace pteryx::cli

// Reports about files by their paths. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/inspect.h"

#include "pteryx/fuse/passes.h"
#include "pteryx/graph/build.h"
#include "pteryx/ops/table.h"
#include "pteryx/program/program.h"

namespace pteryx {

Result<bool> is_language_model(const std::string& path,
                               const std::vector<std::string>& data_files) {
  PTERYX_ASSIGN(const program::Program program, program::Program::open(path, data_files));
  const auto is_of_one = [&](std::string_view method) {
    const program::MethodRecord* const record = program.find(method);
    if (record == nullptr) return false;
    const auto graphs = graph::build_graphs(program, std::span(&record, 1), ops::lookup());
    return graphs.front().ok() && fuse::is_language_model(*graphs.front());
  };
  return is_of_one("forward") || (is_of_one("prefill") && is_of_one("decode"));
}

Result<ProgramReport> inspect(const std::string& path, const InspectOptions& options) {
  PTERYX_ASSIGN(const program::Program program, program::Program::open(path, options.data_files));
  return inspect(program, path, options);
}

}  // namespace pteryx

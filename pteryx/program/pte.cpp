// A .pte file and its data files -> Program. SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/file.h"
#include "pteryx/program/constants.h"
#include "pteryx/program/container.h"
#include "pteryx/program/method.h"
#include "pteryx/program/program.h"
#include "pteryx/program/program_generated.h"
#include "pteryx/program/reader.h"

namespace pteryx::program {
namespace {

Status check_plan(const pte::ExecutionPlan& plan, uint32_t i) {
  const char* missing = nullptr;
  if (count(plan.name()) == 0) missing = "name";
  if (plan.values() == nullptr) missing = "values";
  if (plan.inputs() == nullptr) missing = "inputs";
  if (plan.outputs() == nullptr) missing = "outputs";
  if (count(plan.chains()) == 0) missing = "chains";
  if (plan.delegates() == nullptr) missing = "delegates";
  if (plan.non_const_buffer_sizes() == nullptr) missing = "non_const_buffer_sizes";
  if (missing == nullptr) return {};
  return invalid_program(fmt::format("method {} is missing field '{}'", i, missing));
}

Status check_plans(const pte::Program& root) {
  if (count(root.execution_plan()) == 0) return invalid_program("program has no methods");
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < root.execution_plan()->size(); ++i) {
    const pte::ExecutionPlan& plan = *root.execution_plan()->Get(i);
    PTERYX_TRY(check_plan(plan, i));
    if (!names.insert(view(plan.name())).second) {
      return invalid_program(fmt::format("duplicate method {}", quote(view(plan.name()))));
    }
  }
  return {};
}

// Adds the program's blobs to named_data and gives back its methods.
Result<std::vector<MethodRecord>> read_program(Bytes file, NamedData& named_data) {
  if (reinterpret_cast<uintptr_t>(file.data()) % 16 != 0) {
    return invalid_argument("program starts at an address that is not a multiple of 16");
  }
  PTERYX_ASSIGN(const Container container, open_container(file));
  PTERYX_TRY(check_plans(*container.root));
  Budget budget(container.flatbuffer_bytes);
  PTERYX_TRY(add_named_data(container, budget, named_data));
  PTERYX_ASSIGN(const Constants constants, Constants::read(container, budget));
  const MethodSources sources = {container, constants, named_data};
  const auto& plans = *container.root->execution_plan();
  PTERYX_TRY(budget.take(plans.size(), sizeof(MethodRecord)));
  std::vector<MethodRecord> methods;
  methods.reserve(plans.size());
  for (uint32_t i = 0; i < plans.size(); ++i) {
    auto method = read_method(*plans.Get(i), sources, budget);
    if (!method.ok()) {
      return std::move(method).status().during(
          fmt::format("reading method {}", quote(view(plans.Get(i)->name()))));
    }
    methods.push_back(std::move(method).value());
  }
  return methods;
}

}  // namespace

Result<Program> Program::parse(Bytes program, std::span<const Bytes> data_files) {
  Program p;
  p.file_bytes_ = program.size();
  for (size_t i = 0; i < data_files.size(); ++i) {
    PTERYX_TRY(read_data_file(data_files[i], fmt::format("data file {}", i), p.named_data_));
    p.file_bytes_ += data_files[i].size();
  }
  PTERYX_ASSIGN(p.methods_, read_program(program, p.named_data_));
  return p;
}

Result<Program> Program::open(const std::string& path, std::span<const std::string> data_paths) {
  Program p;
  PTERYX_ASSIGN(const auto program, MappedFile::open(path));
  p.file_bytes_ = program->bytes().size();
  p.keep_alive_.push_back(program);
  for (const std::string& data_path : data_paths) {
    PTERYX_ASSIGN(const auto data, MappedFile::open(data_path));
    PTERYX_TRY(read_data_file(data->bytes(), data_path, p.named_data_));
    p.file_bytes_ += data->bytes().size();
    p.keep_alive_.push_back(data);
  }
  auto methods = read_program(program->bytes(), p.named_data_);
  if (!methods.ok()) return std::move(methods).status().during(fmt::format("reading {}", path));
  p.methods_ = std::move(methods).value();
  return p;
}

const MethodRecord* Program::find(std::string_view name) const {
  for (const MethodRecord& m : methods_) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

}  // namespace pteryx::program

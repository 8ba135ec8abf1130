// A .pte file and its data files -> Program. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/load.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pteryx/base/advance_all.h"
#include "pteryx/program/delegate.h"
#include "pteryx/program/method.h"
#include "pteryx/program/program_generated.h"
#include "pteryx/program/reader.h"

namespace pteryx::program {
namespace {

constexpr size_t kFileAlignment = 16;
constexpr size_t kBlobAlignment = 8;

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

}  // namespace

ProgramLoad::ProgramLoad(SourcePtr program, std::vector<SourcePtr> data_files) {
  program_.sources_.push_back(std::move(program));
  for (SourcePtr& file : data_files) program_.sources_.push_back(std::move(file));
  for (uint32_t i = 0; i < program_.sources_.size(); ++i) {
    const uint64_t head = i == 0 ? kProgramHead : kDataFileHead;
    files_.push_back(&fetch({i, 0, std::min(head, program_.sources_[i]->size())}, kFileAlignment));
  }
}

FetchedBytes& ProgramLoad::fetch(const ByteRange& range, size_t alignment) {
  return program_.tables_.emplace_back(program_.sources_[range.source], range.offset, range.size,
                                       alignment);
}

Result<bool> ProgramLoad::advance() {
  while (stage_ != Stage::kDone) {
    PTERYX_ASSIGN(bool there, advance_all(program_.tables_));
    if (there && stage_ == Stage::kComparisons) {
      PTERYX_ASSIGN(there, compare());
    }
    if (!there) return false;
    PTERYX_TRY(next());
    stage_ = static_cast<Stage>(static_cast<uint8_t>(stage_) + 1);
  }
  return true;
}

Status ProgramLoad::next() {
  switch (stage_) {
    case Stage::kHeads: PTERYX_TRY(read_data_heads()); return in_program(read_head());
    case Stage::kTables: PTERYX_TRY(read_data_tables()); return in_program(read_tables());
    case Stage::kDelegateHeads: return in_program(find_delegate_tables());
    case Stage::kDelegateTables: place_delegate_tables(); break;
    case Stage::kComparisons:
    case Stage::kDone: break;
  }
  return {};
}

Status ProgramLoad::in_program(Status s) const {
  const std::string& name = program_.sources_[0]->name();
  if (s.ok() || name.empty()) return s;
  return std::move(s).during(fmt::format("reading {}", name));
}

std::string ProgramLoad::data_file_name(size_t i) const {
  const std::string& name = program_.sources_[i + 1]->name();
  return name.empty() ? fmt::format("data file {}", i) : name;
}

Status ProgramLoad::read_data_heads() {
  for (size_t i = 0; i + 1 < files_.size(); ++i) {
    const uint64_t size = program_.sources_[i + 1]->size();
    auto extent = read_data_extent(files_[i + 1]->bytes(), {static_cast<uint32_t>(i + 1), 0, size});
    if (!extent.ok())
      return std::move(extent).status().during(fmt::format("reading {}", data_file_name(i)));
    data_extents_.push_back(*extent);
    files_[i + 1] = &fetch({static_cast<uint32_t>(i + 1), 0, extent->tables_size}, kFileAlignment);
  }
  return {};
}

Status ProgramLoad::read_head() {
  PTERYX_ASSIGN(extent_, read_extent(files_[0]->bytes(), program_.sources_[0]->size()));
  files_[0] = &fetch({0, 0, extent_.program_size}, kFileAlignment);
  return {};
}

Status ProgramLoad::read_data_tables() {
  for (size_t i = 0; i < data_extents_.size(); ++i) {
    Status s = read_data_file(data_extents_[i], files_[i + 1]->bytes(), program_.named_data_);
    if (!s.ok()) return std::move(s).during(fmt::format("reading {}", data_file_name(i)));
  }
  return {};
}

Status ProgramLoad::read_tables() {
  PTERYX_ASSIGN(const Container container, open_container(extent_, files_[0]->bytes()));
  PTERYX_TRY(check_plans(*container.root));
  Budget budget(container.tables.size());
  PTERYX_TRY(add_named_data(container, budget, program_.named_data_, comparisons_));
  PTERYX_TRY(read_methods(container, budget));
  find_delegate_heads();
  return {};
}

Status ProgramLoad::read_methods(const Container& container, Budget& budget) {
  PTERYX_ASSIGN(const Constants constants, Constants::read(container, budget));
  const MethodSources sources = {container, constants, program_.named_data_};
  const auto& plans = *container.root->execution_plan();
  PTERYX_TRY(budget.take(plans.size(), sizeof(MethodRecord)));
  program_.methods_.reserve(plans.size());
  for (uint32_t i = 0; i < plans.size(); ++i) {
    auto method = read_method(*plans.Get(i), sources, budget);
    if (!method.ok()) {
      return std::move(method).status().during(
          fmt::format("reading method {}", quote(view(plans.Get(i)->name()))));
    }
    program_.methods_.push_back(std::move(method).value());
  }
  return {};
}

void ProgramLoad::find_delegate_heads() {
  for (const MethodRecord& m : program_.methods_) {
    for (const DelegateRecord& d : m.delegates) {
      if (d.id != kVulkanDelegate || shared_.contains(d.blob)) continue;
      const ByteRange head = *slice(d.blob, 0, std::min(d.blob.size, kBlobHead));
      shared_.emplace(d.blob, &fetch(head, 1));
    }
  }
}

// A blob whose head is wrong is left to those who build the graph: they know which call it is of.
Status ProgramLoad::find_delegate_tables() {
  const std::map<ByteRange, FetchedBytes*> heads = std::exchange(shared_, {});
  for (MethodRecord& m : program_.methods_) {
    for (DelegateRecord& d : m.delegates) {
      if (d.id != kVulkanDelegate) continue;
      d.head = heads.at(d.blob)->bytes();
      const auto regions = read_blob_header(d.head, d.blob);
      if (!regions.ok() || shared_.contains(d.blob)) continue;
      // Blobs in the FlatBuffer may overlap: then a small file could ask for much memory.
      fetched_bytes_ += regions->flatbuffer.size;
      if (fetched_bytes_ > 2 * program_.sources_[0]->size())
        return invalid_program("the delegates of the program overlap");
      shared_.emplace(d.blob, &fetch(regions->flatbuffer, kBlobAlignment));
    }
  }
  return {};
}

void ProgramLoad::place_delegate_tables() {
  for (MethodRecord& m : program_.methods_) {
    for (DelegateRecord& d : m.delegates) {
      const auto found = d.id == kVulkanDelegate ? shared_.find(d.blob) : shared_.end();
      if (found != shared_.end()) d.tables = found->second->bytes();
    }
  }
}

Result<bool> ProgramLoad::compare() {
  for (; compared_ < comparisons_.size(); ++compared_) {
    const SameBytes& c = comparisons_[compared_];
    if (pair_.empty()) {
      for (const ByteRange& r : {c.program, c.data_file})
        pair_.emplace_back(program_.sources_[r.source], r.offset, r.size, 1);
    }
    PTERYX_ASSIGN(const bool there, advance_all(pair_));
    if (!there) return false;
    if (!std::ranges::equal(pair_[0].bytes(), pair_[1].bytes()))
      return in_program(different_data(c.key));
    pair_.clear();
  }
  return true;
}

Result<Program> Program::read(SourcePtr program, std::vector<SourcePtr> data_files) {
  const std::string name = program->name();
  ProgramLoad load(std::move(program), std::move(data_files));
  PTERYX_ASSIGN(const bool there, load.advance());
  if (!there) return io_error(fmt::format("{}: its bytes are not there yet", name));
  return load.take();
}

Result<Program> Program::parse(Bytes program, std::span<const Bytes> data_files) {
  std::vector<SourcePtr> data;
  for (const Bytes file : data_files) data.push_back(std::make_shared<MemorySource>("", file));
  return read(std::make_shared<MemorySource>("", program), std::move(data));
}

uint64_t Program::file_bytes() const {
  uint64_t n = 0;
  for (const SourcePtr& s : sources_) n += s->size();
  return n;
}

const MethodRecord* Program::find(std::string_view name) const {
  for (const MethodRecord& m : methods_) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

}  // namespace pteryx::program

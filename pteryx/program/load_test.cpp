// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/load.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/base/testing/late_source.h"
#include "pteryx/program/delegate.h"
#include "pteryx/program/program.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/program/testing/expect.h"

namespace pteryx::program {
namespace {

using pteryx::testing::LateSource;
using testing::expect_invalid;
using testing::FileBytes;
using testing::fixture_path;
using testing::ProgramBuilder;
using testing::read_fixture;

std::vector<std::string> fixtures(const std::string& extension) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(fixture_path(""))) {
    if (entry.path().extension() == extension) paths.push_back(entry.path().string());
  }
  return paths;
}

TEST(Program, EveryFixtureLoadsWithItsBlobs) {
  const std::vector<std::string> data_files = fixtures(".ptd");
  const std::vector<std::string> programs = fixtures(".pte");
  ASSERT_EQ(data_files.size(), 2U);
  ASSERT_GE(programs.size(), 82U);
  for (const std::string& path : programs) {
    SCOPED_TRACE(path);
    const bool external = path.find("external_weights") != std::string::npos;
    auto p = Program::open(path, external ? data_files : std::vector<std::string>());
    ASSERT_TRUE(p.ok()) << p.status().message();
    for (const MethodRecord& m : p->methods()) {
      EXPECT_FALSE(m.outputs.empty()) << m.name;
      for (const DelegateRecord& d : m.delegates) {
        EXPECT_EQ(d.id, "VulkanBackend");
        auto blob = parse_blob(d, p->named_data());
        ASSERT_TRUE(blob.ok()) << blob.status().message();
        EXPECT_FALSE(blob->chain.empty());
      }
    }
  }
}

TEST(Program, MixedProgramHasKernelsBetweenDelegates) {
  auto p = Program::open(fixture_path("ops/mixed_dyn_matmul.pte"));
  ASSERT_TRUE(p.ok()) << p.status().message();
  const MethodRecord& m = p->methods()[0];
  EXPECT_EQ(m.values.size(), 28U);
  EXPECT_EQ(m.operators, std::vector<std::string>{"aten::expand_copy.out"});
  ASSERT_EQ(m.instructions.size(), 7U);
  EXPECT_EQ(std::get<KernelCall>(m.instructions[1]).args, (std::vector<uint32_t>{0, 7, 8, 3, 3}));
  EXPECT_EQ(std::get<DelegateCall>(m.instructions[4]).args, (std::vector<uint32_t>{3, 1, 15, 21}));
  ASSERT_EQ(m.delegates.size(), 3U);
  EXPECT_EQ(m.delegates[0].specs[0].key, "require_dynamic_shapes");
  EXPECT_EQ(m.buffer_sizes, (std::vector<uint64_t>{0, 104448}));
  const auto& input = std::get<TensorRecord>(m.values[m.inputs[0]]);
  EXPECT_EQ(input.sizes, (Dims{1, 3, 64, 8}));
  EXPECT_TRUE(input.dynamic);
  EXPECT_EQ(input.placement->offset, 12288U);
  EXPECT_EQ(p->file_bytes(), 5792U);
}

TEST(Program, LanguageModelHasMetadataMethods) {
  auto p = Program::open(fixture_path("llm/qwen2_like_fp32.pte"));
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(p->methods().size(), 8U);
  EXPECT_EQ(p->named_data().size(), 30U);
  const MethodRecord* const limit = p->find("get_max_seq_len");
  ASSERT_NE(limit, nullptr);
  EXPECT_EQ(std::get<int64_t>(limit->values[limit->outputs[0]]), 96);
  EXPECT_TRUE(std::get<bool>(p->find("use_kv_cache")->values[0]));
  EXPECT_EQ(p->find("absent"), nullptr);
}

TEST(Program, RecordsOutliveTheMoveOfTheProgram) {
  auto opened = Program::open(fixture_path("ops/linear.pte"));
  ASSERT_TRUE(opened.ok());
  const Program p = std::move(opened).value();
  auto blob = parse_blob(p.methods()[0].delegates[0], p.named_data());
  ASSERT_TRUE(blob.ok());
  size_t constants = 0;
  for (const BlobValue& v : blob->values) {
    const auto* const tensor = std::get_if<BlobTensor>(&v);
    if (tensor == nullptr || !tensor->constant) continue;
    ++constants;
    EXPECT_EQ(tensor->constant->size,
              static_cast<size_t>(numel(tensor->dims)) * size_bytes(tensor->dtype));
    EXPECT_EQ(tensor->constant_key.size(), 64U);
  }
  EXPECT_EQ(constants, 2U);
}

TEST(Program, MissingDataFileIsNamedByItsKey) {
  auto p = Program::open(fixture_path("ops/external_weights.pte"));
  ASSERT_TRUE(p.ok());
  const auto blob = parse_blob(p->methods()[0].delegates[0], p->named_data());
  ASSERT_FALSE(blob.ok());
  EXPECT_EQ(blob.status().message().substr(0, 36), "value 0: constant 0: no data named '");
  EXPECT_NE(blob.status().message().find("(missing .ptd file?)"), std::string::npos);
}

TEST(Program, ErrorsNameTheFile) {
  const std::string data = fixtures(".ptd")[0];
  expect_invalid(Program::open(data),
                 "this is a .ptd data file, not a program\n  while reading " + data);
  const std::string program = fixture_path("ops/add.pte");
  const std::vector<std::string> not_data = {program};
  expect_invalid(Program::open(program, not_data), "not a PTD file\n  while reading " + program);
}

TEST(Program, MissingFilesAreIoErrors) {
  const std::vector<std::string> absent = {fixture_path("absent.ptd")};
  EXPECT_EQ(Program::open(fixture_path("absent.pte")).status().code(), Code::kIo);
  EXPECT_EQ(Program::open(fixture_path("ops/add.pte"), absent).status().code(), Code::kIo);
}

TEST(Program, RefusesPlansWithoutAField) {
  for (const char* field :
       {"name", "values", "inputs", "outputs", "chains", "delegates", "non_const_buffer_sizes"}) {
    ProgramBuilder b;
    b.leave_out(field);
    expect_invalid(Program::parse(b.finish()),
                   std::string("method 0 is missing field '") + field + "'");
  }
}

TEST(Program, RefusesProgramsWithoutMethods) {
  ProgramBuilder b;
  b.leave_out("execution_plan");
  b.add_segment(std::string(64, 'x'));
  expect_invalid(Program::parse(b.finish()), "program has no methods");
}

TEST(Program, RefusesMethodsOfOneName) {
  ProgramBuilder b;
  const std::vector<int32_t> none;
  const std::vector<int64_t> sizes = {0};
  const std::vector<flatbuffers::Offset<pte::EValue>> values;
  const std::vector<flatbuffers::Offset<pte::BackendDelegate>> delegates;
  const std::vector<flatbuffers::Offset<pte::Chain>> chains = {pte::CreateChain(b.fbb)};
  b.plans = {pte::CreateExecutionPlanDirect(b.fbb, "forward", 0, &values, &none, &none, &chains,
                                            nullptr, &delegates, &sizes)};
  expect_invalid(Program::parse(b.finish()), "duplicate method 'forward'");
}

// Every truncation and every change of one byte of a real file is refused or loads; none crashes.
TEST(Program, SurvivesTruncationAndBitFlips) {
  const FileBytes whole = read_fixture("ops/mixed_dyn_matmul.pte");
  const auto load = [](const FileBytes& file) {
    auto p = Program::parse(file);
    if (!p.ok()) {
      EXPECT_FALSE(p.status().message().empty());
      return;
    }
    for (const MethodRecord& m : p->methods()) {
      for (const DelegateRecord& d : m.delegates) {
        const auto blob = parse_blob(d, p->named_data());
        EXPECT_TRUE(blob.ok() || !blob.status().message().empty());
      }
    }
  };
  for (size_t n = 0; n < whole.size(); n += 7) load(whole.first(n));
  FileBytes changed = whole;
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto original = std::to_integer<uint8_t>(whole.bytes()[i]);
    const uint8_t replacements[] = {0, 0xFF, static_cast<uint8_t>(original ^ 1U)};
    changed.put(i, replacements[i % 3]);
    load(changed);
    changed.put(i, original);
  }
}

// Shared lists must not let a small file ask for a large copy.
TEST(Program, RefusesListsSharedWithoutEnd) {
  ProgramBuilder b;
  b.add_tensor();
  b.add_operator("aten::add", "out");
  const auto args = b.fbb.CreateVector(std::vector<int32_t>(20000, 0));
  for (int i = 0; i < 2000; ++i) {
    b.add_instruction(pte::InstructionArguments::KernelCall,
                      pte::CreateKernelCall(b.fbb, 0, args).Union());
  }
  auto p = Program::parse(b.finish());
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.status().message().find("refer to themselves so often"), std::string::npos)
      << p.status().message();
}

TEST(Program, LoadsManyInstructionsQuickly) {
  ProgramBuilder b;
  constexpr int32_t kNodes = 150000;
  for (int32_t i = 0; i <= kNodes; ++i) b.add_tensor({.buffer = 1});
  b.add_operator("aten::relu", "out");
  for (int32_t i = 0; i < kNodes; ++i) b.add_kernel_call(0, {i, i + 1, i + 1});
  const FileBytes file = b.finish();
  const auto start = std::chrono::steady_clock::now();
  auto p = Program::parse(file);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(p->methods()[0].instructions.size(), static_cast<size_t>(kNodes));
  RecordProperty("seconds", std::to_string(seconds.count()));
  EXPECT_LT(seconds.count(), 5.0);  // well under one second, but tests also run under sanitizers
}

// What a program holds, as text.
std::string summary(const Program& p) {
  std::string text;
  for (const auto& [key, blob] : p.named_data())
    text +=
        fmt::format("{} {}+{} of {}\n", key, blob.data.offset, blob.data.size, blob.data.source);
  for (const MethodRecord& m : p.methods()) {
    text +=
        fmt::format("{}: {} values, {} calls\n", m.name, m.values.size(), m.instructions.size());
    for (const ValueRecord& v : m.values) {
      const auto* const t = std::get_if<TensorRecord>(&v);
      if (t != nullptr && t->data) text += fmt::format("{}+{} ", t->data->offset, t->data->size);
    }
    for (const DelegateRecord& d : m.delegates) {
      const auto blob = parse_blob(d, p.named_data());
      text += blob.ok() ? fmt::format("{} nodes\n", blob->chain.size()) : blob.status().message();
    }
  }
  return text;
}

TEST(ProgramLoad, ReadsSourcesThatAreLate) {
  const auto read = [](const std::string& path) {
    return read_fixture(path.substr(fixture_path("").size()));
  };
  std::vector<FileBytes> data;
  for (const std::string& path : fixtures(".ptd")) data.push_back(read(path));
  for (const std::string& path : fixtures(".pte")) {
    SCOPED_TRACE(path);
    const FileBytes file = read(path);
    const bool external = path.find("external_weights") != std::string::npos;
    std::vector<Bytes> files;
    if (external) files.assign(data.begin(), data.end());
    const auto want = Program::parse(file, files);
    ASSERT_TRUE(want.ok()) << want.status().message();
    std::vector<SourcePtr> late;
    for (const Bytes each : files) late.push_back(std::make_shared<LateSource>("", each, 3));
    ProgramLoad load(std::make_shared<LateSource>("", file, 2), late);
    int waits = 0;
    for (auto done = load.advance(); !done.ok() || !*done; done = load.advance()) {
      ASSERT_TRUE(done.ok()) << done.status().message();
      ASSERT_LT(++waits, 100);
    }
    EXPECT_GE(waits, 4);  // two for the head, two for the tables
    EXPECT_EQ(summary(load.take()), summary(*want));
  }
}

TEST(ProgramLoad, SourcesThatEndOrFailAreNamed) {
  const FileBytes file = read_fixture("ops/linear.pte");
  const auto error = [&](const std::shared_ptr<LateSource>& source) {
    ProgramLoad load(source, {});
    for (int i = 0; i < 100; ++i) {
      const auto done = load.advance();
      if (!done.ok()) return std::string(done.status().message());
      if (*done) break;
    }
    return std::string("no error");
  };
  const auto late = [&] { return std::make_shared<LateSource>("far.pte", file, 1); };
  auto source = late();
  source->end_at(63);
  EXPECT_EQ(error(source),
            "far.pte: ended at byte 63, expected 64 bytes at byte 0: it was truncated");
  source = late();
  source->end_at(200);
  EXPECT_NE(error(source).find("far.pte: ended at byte 200, expected "), std::string::npos);
  source = late();
  source->fail_at(100);
  EXPECT_EQ(error(source), "far.pte: byte 100 cannot be read");
  EXPECT_EQ(error(late()), "no error");
  const auto now = Program::read(late());
  ASSERT_FALSE(now.ok());
  EXPECT_EQ(now.status().message(), "far.pte: its bytes are not there yet");
}

// What the program and a data file both have is compared when it is there.
TEST(ProgramLoad, ComparesDataThatIsInTwoPlaces) {
  for (const bool same : {true, false}) {
    ProgramBuilder b;
    b.add_named_data("key", b.add_segment("content"));
    const FileBytes file = b.finish();
    testing::DataFileBuilder d;
    d.add_entry("key", d.add_segment(same ? "content" : "contens"));
    const FileBytes data = d.finish();
    ProgramLoad load(std::make_shared<LateSource>("", file, 1),
                     {std::make_shared<LateSource>("", data, 2)});
    Result<bool> done = false;
    for (int i = 0; i < 100 && done.ok() && !*done; ++i) done = load.advance();
    if (same) {
      EXPECT_TRUE(done.ok() && *done);
    } else {
      ASSERT_FALSE(done.ok());
      EXPECT_EQ(done.status().message(),
                "key 'key' has other data in the program than in a data file");
    }
  }
}

}  // namespace
}  // namespace pteryx::program

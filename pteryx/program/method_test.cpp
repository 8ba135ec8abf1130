// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/method.h"

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/program/program.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/program/testing/expect.h"

namespace pteryx::program {
namespace {

using testing::expect_invalid;
using testing::expect_unsupported;
using testing::FileBytes;
using testing::Header;
using testing::ProgramBuilder;

constexpr const char* kReading = "\n  while reading method 'forward'";

// A tensor, an integer, a bool, a bool tensor, a list; one operator and one delegate.
ProgramBuilder small() {
  ProgramBuilder b;
  b.add_tensor({.buffer = 1});
  b.add_int(1);
  b.add_bool(true);
  b.add_tensor({.dtype = pte::ScalarType::BOOL, .sizes = {}});
  b.add_int_list({1});
  b.add_operator("aten::add", "out");
  b.add_delegate("VulkanBackend", "blob");
  return b;
}

using Change = std::function<void(ProgramBuilder&)>;

Result<Program> parse(const Change& change) {
  ProgramBuilder b = small();
  change(b);
  return Program::parse(b.finish());
}
void refuse(const Change& change, const std::string& message) {
  expect_invalid(parse(change), message + kReading);
}

TEST(Method, EveryInstructionIsRead) {
  ProgramBuilder b = small();
  b.add_kernel_call(0, {0, 0, 1, 0, 0});
  b.add_delegate_call(0, {0, 1});
  b.add_move(1, 1);
  b.add_jump_false(2, 5);
  b.add_free(0);
  b.inputs = {0, 1};
  b.outputs = {0};
  const FileBytes file = b.finish();
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  const MethodRecord& m = p->methods()[0];
  EXPECT_EQ(m.name, "forward");
  EXPECT_EQ(m.inputs, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(m.outputs, (std::vector<uint32_t>{0}));
  EXPECT_EQ(m.buffer_sizes, (std::vector<uint64_t>{0, 1024}));
  ASSERT_EQ(m.instructions.size(), 5U);
  EXPECT_EQ(std::get<KernelCall>(m.instructions[0]).args, (std::vector<uint32_t>{0, 0, 1, 0, 0}));
  EXPECT_EQ(std::get<DelegateCall>(m.instructions[1]).args, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(std::get<MoveCall>(m.instructions[2]).to, 1U);
  EXPECT_EQ(std::get<JumpFalseCall>(m.instructions[3]).destination, 5U);
  EXPECT_EQ(std::get<FreeCall>(m.instructions[4]).value, 0U);
}

TEST(Method, ChainsFollowEachOther) {
  ProgramBuilder b = small();
  b.add_free(0);
  b.add_jump_false(2, 2);
  b.next_chain();
  b.add_jump_false(3, 0);
  b.add_jump_false(3, 2);
  auto p = Program::parse(b.finish());
  ASSERT_TRUE(p.ok()) << p.status().message();
  const auto& list = p->methods()[0].instructions;
  ASSERT_EQ(list.size(), 4U);
  EXPECT_EQ(std::get<JumpFalseCall>(list[1]).destination, 2U);
  EXPECT_EQ(std::get<JumpFalseCall>(list[2]).destination, 2U);
  EXPECT_EQ(std::get<JumpFalseCall>(list[3]).destination, 4U);
}

TEST(Method, OperatorsHaveTheirOverloadIfAny) {
  ProgramBuilder b;
  b.add_operator("aten::add", "out");
  b.add_operator("aten::copy_", "");
  b.operators.push_back(pte::CreateOperatorDirect(b.fbb, "prim::x"));
  auto p = Program::parse(b.finish());
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ(p->methods()[0].operators,
            (std::vector<std::string>{"aten::add.out", "aten::copy_", "prim::x"}));
}

TEST(Method, DelegatesOfAnyBackendAreKept) {
  ProgramBuilder b;
  b.add_delegate("XnnpackBackend", "segment");
  b.add_inline_delegate("VulkanBackend", "inline");
  b.add_inline_delegate("VulkanBackend", "");
  const FileBytes file = b.finish();
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  const auto& d = p->methods()[0].delegates;
  ASSERT_EQ(d.size(), 3U);
  EXPECT_EQ(d[0].id, "XnnpackBackend");
  EXPECT_EQ(d[0].blob.size, 7U);
  EXPECT_EQ(d[1].blob.size, 6U);
  EXPECT_EQ(file.bytes()[d[1].blob.offset], std::byte{'i'});
  EXPECT_EQ(d[2].blob.size, 0U);
}

TEST(Method, CompileSpecsAreKept) {
  ProgramBuilder b;
  const std::vector<uint8_t> value = {1, 2};
  const std::vector<flatbuffers::Offset<pte::CompileSpec>> specs = {
      pte::CreateCompileSpecDirect(b.fbb, "force_fp16", &value)};
  const auto where = pte::CreateBackendDelegateDataReference(b.fbb, pte::DataLocation::SEGMENT,
                                                             b.add_segment("x"));
  b.delegates.push_back(pte::CreateBackendDelegateDirect(b.fbb, "VulkanBackend", where, &specs));
  const FileBytes file = b.finish();
  auto p = Program::parse(file);
  ASSERT_TRUE(p.ok()) << p.status().message();
  const CompileSpec& spec = p->methods()[0].delegates[0].specs[0];
  EXPECT_EQ(spec.key, "force_fp16");
  EXPECT_EQ(spec.value.size(), 2U);
}

TEST(Method, RefusesIndicesOutsideTheTable) {
  refuse([](ProgramBuilder& b) { b.inputs = {5}; }, "input 0 refers to value 5 of 5");
  refuse([](ProgramBuilder& b) { b.inputs = {0, -1}; }, "input 1 refers to value -1 of 5");
  refuse([](ProgramBuilder& b) { b.outputs = {5}; }, "output 0 refers to value 5 of 5");
  refuse([](ProgramBuilder& b) { b.add_kernel_call(0, {0, 5}); },
         "instruction 0: argument 1 refers to value 5 of 5");
  refuse([](ProgramBuilder& b) { b.add_delegate_call(0, {-1}); },
         "instruction 0: argument 0 refers to value -1 of 5");
  refuse([](ProgramBuilder& b) { b.add_move(5, 0); },
         "instruction 0: source refers to value 5 of 5");
  refuse([](ProgramBuilder& b) { b.add_move(0, -1); },
         "instruction 0: destination refers to value -1 of 5");
  refuse([](ProgramBuilder& b) { b.add_jump_false(9, 0); },
         "instruction 0: condition refers to value 9 of 5");
  refuse([](ProgramBuilder& b) { b.add_free(5); }, "instruction 0: freed refers to value 5 of 5");
}

TEST(Method, RefusesListsAsInputsAndOutputs) {
  refuse([](ProgramBuilder& b) { b.inputs = {0, 4}; },
         "input 1 of 'forward' (value 4) has unsupported kind: a list of integers");
  refuse([](ProgramBuilder& b) { b.outputs = {4}; },
         "output 0 of 'forward' (value 4) has unsupported kind: a list of integers");
}

TEST(Method, RefusesInstructions) {
  refuse([](ProgramBuilder& b) { b.add_instruction(pte::InstructionArguments::NONE, 0); },
         "instruction 0: unknown or empty (kind 0)");
  refuse([](ProgramBuilder& b) { b.add_instruction(pte::InstructionArguments::MoveCall, 0); },
         "instruction 0: unknown or empty (kind 3)");
  refuse(
      [](ProgramBuilder& b) {
        b.add_free(0);
        b.add_instruction(static_cast<pte::InstructionArguments>(6),
                          pte::CreateNull(b.fbb).Union());
      },
      "instruction 1: unknown or empty (kind 6)");
  refuse(
      [](ProgramBuilder& b) {
        b.add_instruction(pte::InstructionArguments::KernelCall,
                          pte::CreateKernelCall(b.fbb).Union());
      },
      "instruction 0: no arguments");
}

TEST(Method, RefusesOperatorsAndDelegatesThatAreNotThere) {
  refuse([](ProgramBuilder& b) { b.add_kernel_call(1, {}); }, "instruction 0: operator 1 of 1");
  refuse([](ProgramBuilder& b) { b.add_kernel_call(-1, {}); }, "instruction 0: operator -1 of 1");
  refuse([](ProgramBuilder& b) { b.add_delegate_call(1, {}); }, "instruction 0: delegate 1 of 1");
  refuse([](ProgramBuilder& b) { b.add_delegate_call(-1, {}); }, "instruction 0: delegate -1 of 1");
  refuse([](ProgramBuilder& b) { b.operators.push_back(pte::CreateOperator(b.fbb)); },
         "operator 1 has no name");
  refuse(
      [](ProgramBuilder& b) {
        b.operators.push_back(pte::CreateOperatorDirect(b.fbb, "a\x1b[31m", "out"));
      },
      "name 'a\\x1b[31m': expected at most 256 bytes, none of them a control character");
  refuse(
      [](ProgramBuilder& b) {
        const std::string name(257, 'n');
        b.operators.push_back(pte::CreateOperatorDirect(b.fbb, "aten::add", name.c_str()));
      },
      "name '" + std::string(128, 'n') +
          "...': expected at most 256 bytes, none of them a control character");
}

TEST(Method, RefusesJumps) {
  refuse([](ProgramBuilder& b) { b.add_jump_false(2, 2); }, "instruction 0: jump to 2 of 1");
  refuse([](ProgramBuilder& b) { b.add_jump_false(2, -1); }, "instruction 0: jump to -1 of 1");
  refuse([](ProgramBuilder& b) { b.add_jump_false(1, 0); },
         "instruction 0: condition is not boolean: value 1 is an integer");
  refuse([](ProgramBuilder& b) { b.add_jump_false(0, 0); },
         "instruction 0: condition is not boolean: value 0 is a tensor");
}

TEST(Method, RefusesBuffers) {
  refuse([](ProgramBuilder& b) { b.buffer_sizes = {0, 1024, -1}; }, "planned buffer 2 has size -1");
  refuse([](ProgramBuilder& b) { b.buffer_sizes = {0, 1024, INT64_MAX}; },
         "method 'forward' asks for more than 1024 bytes of working memory");
  expect_unsupported(
      parse([](ProgramBuilder& b) {
        b.buffer_devices = {pte::CreateNonConstBufferDevice(b.fbb, 1, pte::DeviceType::CUDA)};
      }),
      std::string("planned buffer 1 is on device type CUDA") + kReading);
  EXPECT_TRUE(
      parse([](ProgramBuilder& b) { b.buffer_sizes = {-5, 1024}; }).ok());  // entry 0 means nothing
}

TEST(Method, RefusesDelegates) {
  const auto refuse_delegate = [](auto make, const std::string& message) {
    refuse([&](ProgramBuilder& b) { b.delegates = {make(b.fbb)}; }, message);
  };
  using Builder = flatbuffers::FlatBufferBuilder;
  const auto at = [](Builder& f, int location, uint32_t index) {
    return pte::CreateBackendDelegateDataReference(f, static_cast<pte::DataLocation>(location),
                                                   index);
  };
  refuse_delegate(
      [&](Builder& f) { return pte::CreateBackendDelegateDirect(f, nullptr, at(f, 1, 0)); },
      "delegate 0: no backend name");
  refuse_delegate([&](Builder& f) { return pte::CreateBackendDelegateDirect(f, "X"); },
                  "delegate 0: no data");
  refuse_delegate([&](Builder& f) { return pte::CreateBackendDelegateDirect(f, "X", at(f, 1, 1)); },
                  "delegate 0: segment 1 of 1");
  refuse_delegate([&](Builder& f) { return pte::CreateBackendDelegateDirect(f, "X", at(f, 0, 0)); },
                  "delegate 0: inline data 0 of 0");
  refuse_delegate([&](Builder& f) { return pte::CreateBackendDelegateDirect(f, "X", at(f, 2, 0)); },
                  "delegate 0: unknown data location 2");
  refuse_delegate(
      [&](Builder& f) {
        const std::vector<flatbuffers::Offset<pte::CompileSpec>> specs = {
            pte::CreateCompileSpecDirect(f, "key")};
        return pte::CreateBackendDelegateDirect(f, "X", at(f, 1, 0), &specs);
      },
      "delegate 0: compile spec 0 malformed");
}

TEST(Method, RefusesInlineBlobsWithoutData) {
  flatbuffers::FlatBufferBuilder f;
  const std::vector<int32_t> none;
  const std::vector<int64_t> sizes = {0};
  const std::vector<flatbuffers::Offset<pte::EValue>> values;
  const std::vector<flatbuffers::Offset<pte::Chain>> chains = {pte::CreateChain(f)};
  const std::vector<flatbuffers::Offset<pte::BackendDelegate>> delegates = {
      pte::CreateBackendDelegateDirect(f, "X", pte::CreateBackendDelegateDataReference(f))};
  const std::vector<flatbuffers::Offset<pte::ExecutionPlan>> plans = {
      pte::CreateExecutionPlanDirect(f, "forward", 0, &values, &none, &none, &chains, nullptr,
                                     &delegates, &sizes)};
  const std::vector<flatbuffers::Offset<pte::BackendDelegateInlineData>> blobs = {
      pte::CreateBackendDelegateInlineData(f)};
  pte::FinishProgramBuffer(f, pte::CreateProgramDirect(f, 0, &plans, nullptr, &blobs));
  expect_invalid(Program::parse(testing::assemble_pte(f, {}, Header::kNone)),
                 std::string("delegate 0: inline data 0 is empty") + kReading);
}

}  // namespace
}  // namespace pteryx::program

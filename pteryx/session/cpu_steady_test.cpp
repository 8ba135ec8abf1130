// Once warm, a run on the CPU makes no heap allocation. Allocations are counted on the calling
// thread; a session of one thread does there what the others of a pool do.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/testing/allocations.h"
#include "pteryx/session/native/blocking.h"
#include "pteryx/session/steps.h"
#include "pteryx/session/testing/cpu_runs.h"

namespace pteryx::testing {
namespace {

// Decode steps in places that a session has been to, so that every size is known.
TEST(CpuSteady, ADecodeStepAllocatesNothing) {
  for (const char* name : {"llm/qwen3_like_q4", "llm/qwen2_like_fp32"}) {
    for (const Precision precision : {Precision::kF32, Precision::kF16}) {
      Session session = load_on_cpu(name, {.precision = precision, .threads = 1});
      text(session, 20, 40);
      int64_t token = 5;
      int64_t position = 20;
      bool ok = true;
      int allocated = 0;
      for (int64_t i = 0; i < 40; ++i, ++position) {
        token = i * 11 % 299;
        const Value inputs[] = {
            pteryx::tensor<int64_t>({1, 1}, std::span<const int64_t>(&token, 1)),
            pteryx::tensor<int64_t>({1}, std::span<const int64_t>(&position, 1))};
        AllocationCount count;
        ok = session.run("forward", inputs).ok() && ok;
        allocated += count.stop();
      }
      EXPECT_TRUE(ok) << name;
      EXPECT_EQ(allocated, 0) << name << (precision == Precision::kF16 ? ", f16" : ", f32");
    }
  }
}

// With all that sampling has to look at.
TEST(CpuSteady, AStepThatDrawsItsTokenAllocatesNothing) {
  const std::vector<TokenId> prompt = {3, 1, 4, 1, 5};
  for (const char* name : {"llm/qwen3_like_q4", "llm/qwen2_like_fp32"}) {
    for (const uint32_t threads : {1U, 2U}) {
      Session session = load_on_cpu(name, {.threads = threads, .sampling = true});
      const auto steps = Steps::open(session, 1);
      ASSERT_TRUE(steps.ok()) << steps.status().message();
      (*steps)->set({.temperature = 0.8F,
                     .top_p = 0.9F,
                     .repetition = 1.1F,
                     .presence = 0.1F,
                     .frequency = 0.1F,
                     .top_k = 40,
                     .seed = 7});
      int allocated = 0;
      for (int pass = 0; pass < 2; ++pass) {  // the first brings the memory that steps need
        ASSERT_TRUE(blocking::start(**steps, prompt, 0).ok());
        ASSERT_TRUE(blocking::take(**steps).ok());
        auto position = static_cast<int64_t>(prompt.size());
        bool ok = true;
        allocated = 0;
        for (int i = 0; i < 30; ++i) {
          AllocationCount count;
          ok = blocking::start_next(**steps, position++).ok() && ok;
          ok = blocking::take(**steps).ok() && ok;
          allocated += count.stop();
        }
        EXPECT_TRUE(ok) << name;
      }
      EXPECT_EQ(allocated, 0) << name << ", " << threads << " threads";
    }
  }
}

TEST(CpuSteady, ANetworkAllocatesNothing) {
  for (const CpuProgram& program : cpu_programs()) {
    if (program.input.empty()) continue;
    Session session = program.load(1);
    program.run(session);
    const std::vector<float> x(static_cast<size_t>(numel(program.input)), 0.5F);
    const Value inputs[] = {pteryx::tensor<float>(program.input, x)};
    AllocationCount count;
    const bool ok = session.run("forward", inputs).ok();
    EXPECT_EQ(count.stop(), 0) << program.name;
    EXPECT_TRUE(ok) << program.name;
  }
}

}  // namespace
}  // namespace pteryx::testing

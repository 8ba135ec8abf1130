// Sessions on the CPU with several threads, and on several threads. Under ThreadSanitizer, too.
// SPDX-License-Identifier: BSD-3-Clause
#include <thread>

#include "pteryx/session/testing/cpu_runs.h"

namespace pteryx::testing {
namespace {

TEST(CpuThreads, AnyNumberGivesTheSameBits) {
  for (const CpuProgram& program : cpu_programs()) {
    SCOPED_TRACE(program.name);
    Session alone = program.load(1);
    const Bits want = program.run(alone);
    ASSERT_FALSE(want.empty());
    for (const uint32_t threads : {2U, 3U, 8U}) {
      Session session = program.load(threads);
      EXPECT_EQ(program.run(session), want) << threads << " threads";
    }
  }
}

// Whoever finds the pool busy runs alone: who meets whom must not show in the results.
TEST(CpuThreads, SessionsOnSeveralThreadsShareAPool) {
  constexpr uint32_t kThreads = 4;
  constexpr int kRuns = 12;
  const std::vector<CpuProgram> programs = {
      {"llm/qwen3_like_q4", Precision::kF16},
      {"llm/qwen2_like_fp32"},
      {"ops/net_cnn", Precision::kF32, {1, 3, 32, 32}},
  };
  std::vector<Session> sessions;
  std::vector<Bits> want;
  for (const CpuProgram& program : programs) {
    sessions.push_back(program.load(kThreads));
    want.push_back(program.run(sessions.back()));
    ASSERT_TRUE(sessions.back().reset().ok());
  }
  std::vector<std::thread> callers;
  std::vector<int> wrong(programs.size());
  for (size_t i = 0; i < programs.size(); ++i) {
    callers.emplace_back([&, i] {
      for (int n = 0; n < kRuns; ++n) {
        wrong[i] += programs[i].run(sessions[i]) == want[i] ? 0 : 1;
        wrong[i] += sessions[i].reset().ok() ? 0 : 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (size_t i = 0; i < programs.size(); ++i) EXPECT_EQ(wrong[i], 0) << programs[i].name;
}

// A session that goes while another uses the same pool.
TEST(CpuThreads, SessionsComeAndGo) {
  const CpuProgram program{"llm/qwen3_like_q4", Precision::kF16};
  Session kept = program.load(3);
  const Bits want = program.run(kept);
  std::thread other([&] {
    for (int n = 0; n < 4; ++n) {
      Session session = program.load(3);
      EXPECT_EQ(program.run(session), want);
    }
  });
  for (int n = 0; n < 8; ++n) {
    EXPECT_TRUE(kept.reset().ok());
    EXPECT_EQ(program.run(kept), want);
  }
  other.join();
}

}  // namespace
}  // namespace pteryx::testing

// Language models called with changing lengths and positions: every call gives the bits that a
// session which never saw another shape gives.
// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "programs.h"

namespace pteryx::testing {
namespace {

// A model and the bounds of its calls.
struct Model {
  friend void PrintTo(const Model& m, std::ostream* out) { *out << m.name; }

  std::string name;
  int64_t longest, capacity;
};
const std::vector<Model>& models() {
  static const std::vector<Model> all = {
      {"tiny", 300, 512}, {"qwen2_like_fp32", 95, 160}, {"qwen3_like_q4", 95, 160}};
  return all;
}

Result<Session> open(const Model& m, LoadOptions options = {}) {
  if (m.name == "tiny") return load_bytes(TinyModel{}.build(), options);
  if (options.device == nullptr) options.device = device();
  return Session::load(program::testing::fixture_path("llm/" + m.name + ".pte"), options);
}

Session must_open(const Model& m, const LoadOptions& options = {}) {
  auto session = open(m, options);
  if (!session.ok()) {
    ADD_FAILURE() << session.status().message();
    std::abort();
  }
  return std::move(session).value();
}

Bits must_run(Session& session, const Step& step) {
  auto bits = run_step(session, step);
  EXPECT_TRUE(bits.ok()) << fmt::format("S {} at {}: {}", step.length, step.position,
                                        bits.status().message());
  return bits.ok() ? *bits : Bits{};
}

// The largest difference of two results, as floats, less what a tolerance allows.
double excess(const Bits& got, const Bits& want, double a, double r) {
  if (got.size() != want.size()) return INFINITY;
  double worst = -INFINITY;
  for (size_t i = 0; i < got.size(); ++i) {
    const double w = static_cast<double>(std::bit_cast<float>(want[i]));
    const double g = static_cast<double>(std::bit_cast<float>(got[i]));
    worst = std::fmax(worst, std::fabs(g - w) - a - r * std::fabs(w));
  }
  return worst;
}

// "Fresh": a second session that keeps one plan, so that each call is planned and recorded anew,
// and that is put back to its loaded state before it is given the calls which wrote the rows the
// compared call reads, cut the same way. A newly loaded session differs from it in nothing but the
// upload of weights, which Replay.ResetEqualsANewSession checks.
class Fresh {
 public:
  explicit Fresh(const Model& m) : session_(must_open(m, {.testing = {.plan_cache = 1}})) {}

  Bits after(const std::vector<Step>& before, const Step& step) {
    EXPECT_TRUE(session_.reset().ok());
    for (const Step& s : before) must_run(session_, s);
    return must_run(session_, step);
  }

 private:
  Session session_;
};

// Calls of one session; each is compared with a fresh one.
class Replay {
 public:
  explicit Replay(const Model& m) : session_(must_open(m)), fresh_(m) {}

  // Rows from `position` on are written anew; earlier ones stay.
  Bits call(const Step& step) {
    SCOPED_TRACE(fmt::format("S {} at {}", step.length, step.position));
    while (!written_.empty() && written_.back().position >= step.position) written_.pop_back();
    const Bits got = must_run(session_, step);
    EXPECT_TRUE(got == fresh_.after(written_, step)) << "other bits than a fresh session";
    written_.push_back(step);
    return got;
  }
  Session& session() { return session_; }
  const std::vector<Step>& written() const { return written_; }

 private:
  Session session_;
  Fresh fresh_;
  std::vector<Step> written_;
};

class Replays : public ::testing::TestWithParam<Model> {};

TEST_P(Replays, LongShortAndLongAgain) {
  Replay r(GetParam());
  for (const int64_t s :
       {GetParam().longest, int64_t{64}, int64_t{8}, int64_t{1}, GetParam().longest})
    r.call({s, 0});
}

TEST_P(Replays, PrefillThenDecode) {
  Replay r(GetParam());
  int64_t pos = 0;
  for (const int64_t s : {3, 1, 1, 5, 1, 1, 2}) {
    r.call({s, pos});
    pos += s;
  }
  // Back to the start: rows that are still there from before must not show.
  r.call({3, 0});
  r.call({1, 3});
}

TEST_P(Replays, FirstCallIsOneTokenAtTheStart) {
  Replay r(GetParam());
  r.call({1, 0});
  r.call({1, 1});
}

TEST_P(Replays, TwoChunksEqualOne) {
  const Model& m = GetParam();
  Session whole = must_open(m);
  Session parts = must_open(m);
  const Bits want = must_run(whole, {48, 0});
  must_run(parts, {31, 0});
  Bits got = must_run(parts, {17, 31});
  // A model that gives every row gives those of its chunk; compare the last.
  const size_t row = std::min<size_t>(got.size(), m.name == "tiny" ? 32 : got.size());
  const Bits last(got.end() - static_cast<ptrdiff_t>(row), got.end());
  const Bits last_want(want.end() - static_cast<ptrdiff_t>(row), want.end());
  EXPECT_LE(excess(last, last_want, 1e-3, 1e-3), 0);
}

TEST_P(Replays, TheSameCallTwiceGivesTheSameBits) {
  Session session = must_open(GetParam());
  const Bits first = must_run(session, {5, 0});
  EXPECT_TRUE(must_run(session, {5, 0}) == first);
  const Bits next = must_run(session, {1, 5});
  EXPECT_TRUE(must_run(session, {1, 5}) == next);
}

TEST_P(Replays, ResetEqualsANewSession) {
  Session used = must_open(GetParam());
  for (const Step& s : {Step{9, 0}, Step{1, 9}, Step{2, 10}}) must_run(used, s);
  ASSERT_TRUE(used.reset().ok());
  for (const Step& s : {Step{4, 0}, Step{1, 4}}) {
    Session fresh = must_open(GetParam());
    if (s.position > 0) must_run(fresh, {4, 0});
    EXPECT_TRUE(must_run(used, s) == must_run(fresh, s)) << s.position;
  }
}

TEST_P(Replays, MatchesTheCpuKernels) {
  Session gpu = must_open(GetParam());
  Session cpu = must_open(GetParam(), {.device = gpu::cpu_device()});
  const int64_t longest = GetParam().longest;  // 300 of the tiny model
  for (const Step& s : {Step{7, 0}, Step{1, 7}, Step{3, 8}, Step{2, 4}, Step{1, 0}, Step{64, 0},
                        Step{1, 64}, Step{longest, 0}, Step{64, longest}, Step{1, longest + 64}}) {
    EXPECT_LE(excess(must_run(gpu, s), must_run(cpu, s), 1e-3, 1e-3), 0)
        << s.length << " at " << s.position;
  }
}

// Each refusal stands between two good calls, which give the same bits as without it: of the last
// row of full caches, so that any row a refused call had written would show. Nothing is made, sent
// or run for it.
TEST_P(Replays, RefusedCallsLeaveNothingBehind) {
  const Model& m = GetParam();
  Session session = must_open(m);
  const Step last{1, m.capacity - 1};
  must_run(session, {m.longest, 0});
  must_run(session, {last.position - m.longest, m.longest});
  const Bits want = must_run(session, last);
  const auto refused = [&](Step step, std::string_view text) {
    step.shift = 3;
    const gpu::Counters before = device()->counters();
    const auto got = run_step(session, step);
    const gpu::Counters after = device()->counters();
    ASSERT_FALSE(got.ok()) << step.length << " at " << step.position << " was accepted";
    EXPECT_EQ(got.status().code(), Code::kInvalidArgument) << got.status().message();
    EXPECT_NE(got.status().message().find(text), std::string_view::npos) << got.status().message();
    EXPECT_EQ(after.submits, before.submits);
    EXPECT_EQ(after.dispatches, before.dispatches);
    EXPECT_EQ(after.writes, before.writes);
    EXPECT_EQ(after.reads, before.reads);
    EXPECT_EQ(after.buffers_created, before.buffers_created);
    EXPECT_EQ(after.pipelines_created, before.pipelines_created);
    EXPECT_TRUE(must_run(session, last) == want) << "after: " << got.status().message();
  };
  refused({0, 6}, "input 0 of 'forward' dim 1: expected 1 to");
  refused({m.longest + 1, 0}, fmt::format("expected 1 to {}, got {}", m.longest, m.longest + 1));
  refused({1, -1}, m.name == "tiny" ? "position: expected 0 or more, got -1" : "-1");
  if (m.name == "tiny") {  // its tables have twice as many rows as its caches
    const int64_t rows = 2 * m.capacity;
    refused({1, rows}, fmt::format("position {0} + 1 rows exceed the {0} rows of freqs_cos", rows));
    refused({5, rows - 2},
            fmt::format("position {} + 5 rows exceed the {} rows of freqs_cos", rows - 2, rows));
  }
  refused({2, m.capacity - 1}, fmt::format("{} + 2", m.capacity - 1));
  refused({1, m.capacity}, fmt::format("{} + 1", m.capacity));
  refused({1, int64_t{1} << 33}, "does not fit");
}

INSTANTIATE_TEST_SUITE_P(, Replays, ::testing::ValuesIn(models()),
                         [](const auto& test) { return test.param.name; });

// A context longer than half the cache: the new length and the new position belong together.
TEST(Replay, OneTokenAfterALongPrefill) {
  Replay r(models()[0]);
  r.call({300, 0});
  r.call({1, 300});
  r.call({17, 301});
}

TEST(Replay, LongPrefillsAndSingleTokens) {
  Replay r(models()[0]);
  int64_t pos = 0;
  for (const int64_t s : {111, 1, 1, 1, 57, 1, 1}) {
    r.call({s, pos});
    pos += s;
  }
}

// Random lengths and positions: on, back to the start of any earlier call, or all the way back.
TEST(Replay, RandomStepsEqualFreshSessions) {
  const char* given = std::getenv("PTERYX_SEED");
  const auto seed = static_cast<uint32_t>(given == nullptr ? 1 : std::strtoul(given, nullptr, 10));
  SCOPED_TRACE(fmt::format("PTERYX_SEED={}", seed));
  std::mt19937 engine(seed);
  const auto draw = [&](uint32_t n) { return static_cast<int64_t>(engine() % n); };
  Replay r(models()[0]);
  for (int i = 0; i < 500 && !::testing::Test::HasFailure(); ++i) {
    const auto& written = r.written();
    int64_t pos = written.empty() ? 0 : written.back().position + written.back().length;
    // Few calls before the compared one: a fresh session repeats all of them.
    if (written.size() > 4 || (!written.empty() && draw(4) == 0))
      pos =
          draw(3) == 0
              ? 0
              : written[static_cast<size_t>(draw(static_cast<uint32_t>(written.size())))].position;
    const int64_t length = draw(2) == 0 ? 1 : 1 + draw(draw(4) == 0 ? 200 : 12);
    r.call({std::min<int64_t>(length, 512 - pos), pos});
  }
}

}  // namespace
}  // namespace pteryx::testing

// Loading, running and generating by advance() alone, on a device that finishes everything late and
// in another order, from bytes that come late: what a page does.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/base/testing/late_source.h"
#include "pteryx/gpu/native/blocking.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/gpu/testing/late_device.h"
#include "pteryx/llm.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/steps.h"

namespace pteryx {
namespace {

constexpr int kMostTurns = 2'000'000;

std::string fixture(const std::string& name) {
  return std::string(PTERYX_TEST_DATA) + "/fixtures/" + name + ".pte";
}

// A file whose bytes come late.
struct LateFile {
  std::string bytes;
  SourcePtr source;

  explicit LateFile(const std::string& path) {
    auto read = read_all(path, uint64_t{64} << 20);
    EXPECT_TRUE(read.ok()) << read.status().message();
    if (read.ok()) bytes = std::move(read).value();
    source = std::make_shared<testing::LateSource>(path, std::as_bytes(std::span(bytes)), 3);
  }
};

// How often it said "not yet" before it was finished; -1: it failed, or never was.
int turns(auto& job) {
  for (int i = 0; i < kMostTurns; ++i) {
    const auto done = job.advance();
    EXPECT_TRUE(done.ok()) << done.status().message();
    if (!done.ok()) return -1;
    if (*done) return i;
  }
  ADD_FAILURE() << "not finished after " << kMostTurns << " turns";
  return -1;
}

// The message that it ends with.
std::string error_of(auto& job) {
  for (int i = 0; i < kMostTurns; ++i) {
    const auto done = job.advance();
    if (!done.ok()) return std::string(done.status().message());
    if (*done) return "none";
  }
  return "not finished";
}

using Ids = std::vector<TokenId>;

Ids text_of(llm::Generator& g, const llm::GenerateOptions& options, auto&& next_piece) {
  Ids ids;
  const Status s = g.begin(Ids{1, 2, 3, 4, 5, 6, 7}, options);
  EXPECT_TRUE(s.ok()) << s.message();
  while (!g.done()) {
    const auto piece = next_piece();
    if (!piece) break;
    if (piece->token) ids.push_back(*piece->token);
  }
  return ids;
}

// A token that is there is handed out before another step is encoded.
TEST(Jobs, ReadingDoesNotWaitForEncoding) {
  const auto device = std::make_shared<gpu::LateDevice>(gpu::shared_device(), 5);
  llm::ModelOptions options;
  options.load.device = device;
  auto model = llm::Model::load(fixture("llm/qwen3_like_q4"), options);
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto sequence = llm::Sequence::create(**model);
  ASSERT_TRUE(sequence.ok()) << sequence.status().message();
  llm::Generator g(**sequence);
  ASSERT_TRUE(g.begin(Ids{1, 2, 3}, {.max_new_tokens = 20, .ignore_end = true}).ok());
  ASSERT_TRUE(g.step().ok());
  const Steps& steps = (*sequence)->steps();
  device->hold_reads();
  for (int i = 0; i < kMostTurns && steps.can_start(); ++i) {
    const auto there = g.advance();
    ASSERT_TRUE(there.ok());
    ASSERT_FALSE(*there);
  }
  ASSERT_GT(steps.under_way(), 2U);
  device->let_reads_go();
  // What is submitted now is done after all of them.
  gpu::Device& real = *gpu::shared_device();
  const gpu::BufferId from = gpu::buffer_or_die(real, {.size = 4, .label = "from"});
  const gpu::BufferId last =
      gpu::buffer_or_die(real, {.size = 4, .kind = gpu::BufferKind::kReadback, .label = "last"});
  const gpu::Copy copy{.src = from, .dst = last, .size = 4};
  ASSERT_TRUE(real.submit({}, {&copy, 1}).ok());
  const auto ticket = real.read(last, 0, 4);
  ASSERT_TRUE(ticket.ok() && gpu::wait(real, *ticket).ok());
  real.release(*ticket);
  real.destroy(from);
  real.destroy(last);
  const uint64_t submits = device->counters().submits;
  while (steps.under_way() > 1) {
    const auto there = g.advance();
    ASSERT_TRUE(there.ok() && *there);
    EXPECT_TRUE(g.piece().token.has_value());
    EXPECT_EQ(device->counters().submits, submits);
  }
}

TEST(Jobs, AModelIsLoadedAndWritesByAdvanceAlone) {
  for (const char* name : {"llm/qwen3_like_q4", "llm/qwen2_like_fp32"}) {
    for (const auto& on : gpu::gpu_and_cpu()) {
      const bool cpu = on->caps().cpu;
      for (const bool log_probabilities : {false, true}) {
        SCOPED_TRACE(std::string(name) + (cpu ? " cpu" : " gpu") +
                     (log_probabilities ? " with logits" : ""));
        const llm::GenerateOptions options{.max_new_tokens = 12,
                                           .ignore_end = true,
                                           .log_probabilities = log_probabilities,
                                           .responsive = !cpu};
        llm::ModelOptions waited;
        waited.load.device = on;
        auto plain = llm::Model::load(fixture(name), waited);
        ASSERT_TRUE(plain.ok()) << plain.status().message();
        const auto sequence = llm::Sequence::create(**plain);
        ASSERT_TRUE(sequence.ok()) << sequence.status().message();
        llm::Generator g(**sequence);
        const Ids want = text_of(g, options, [&]() -> std::optional<llm::Piece> {
          auto piece = g.step();
          EXPECT_TRUE(piece.ok());
          return piece.ok() ? std::optional(std::move(piece).value()) : std::nullopt;
        });
        ASSERT_EQ(want.size(), 12U);

        const auto device = std::make_shared<gpu::LateDevice>(on, 7);
        const LateFile file(fixture(name));
        llm::ModelOptions late = waited;
        late.load.device = device;
        llm::ModelLoad load(file.source, {}, late);
        EXPECT_GT(turns(load), 10);
        const std::unique_ptr<llm::Model> model = load.take();
        ASSERT_NE(model, nullptr);
        const uint64_t postponed = device->postponed();
        const auto late_sequence = llm::Sequence::create(*model);
        ASSERT_TRUE(late_sequence.ok()) << late_sequence.status().message();
        llm::Generator later(**late_sequence);
        const Ids got = text_of(later, options, [&]() -> std::optional<llm::Piece> {
          return turns(later) < 0 ? std::nullopt : std::optional(later.piece());
        });
        EXPECT_EQ(got, want);
        if (!cpu) {
          EXPECT_GT(device->postponed(), postponed);
        }
        EXPECT_EQ(device->idled(), 0U) << "somebody waited";
      }
    }
  }
}

std::vector<std::byte> bytes_of(std::span<const Value> outputs) {
  std::vector<std::byte> all;
  for (const Value& v : outputs) {
    if (v.tensor() == nullptr) continue;
    const auto* data = static_cast<const std::byte*>(v.tensor()->data);
    all.insert(all.end(), data, data + v.tensor()->size_bytes);
  }
  return all;
}

// Inputs of a method at their largest: 0, 1, 2, 0, ...
struct Inputs {
  std::vector<std::vector<std::byte>> memory;
  std::vector<Value> values;

  explicit Inputs(const MethodInfo& m) {
    for (const ValueInfo& info : m.inputs) {
      if (info.kind != "tensor") {
        values.push_back(info.fixed);
        continue;
      }
      const auto n = static_cast<size_t>(numel(info.dims));
      auto& bytes = memory.emplace_back(n * size_bytes(info.dtype));
      for (size_t i = 0; i < n; ++i) {
        const float f = static_cast<float>(i % 3);
        const int64_t v = static_cast<int64_t>(i % 3);
        if (info.dtype == DType::kF32) std::memcpy(&bytes[i * 4], &f, 4);
        if (info.dtype == DType::kI64) std::memcpy(&bytes[i * 8], &v, 8);
      }
      values.emplace_back(TensorView{.dtype = info.dtype,
                                     .dims = info.dims,
                                     .data = bytes.data(),
                                     .size_bytes = bytes.size()});
    }
  }
};

// Among them programs with steps on the CPU between those on the GPU.
TEST(Jobs, ProgramsRunByAdvanceAlone) {
  for (const char* name : {"ops/mixed_cumsum", "ops/dyn_transformer", "ops/conv2d_bn_relu6",
                           "ops/argmax", "ops/embedding"}) {
    for (const auto& on : gpu::gpu_and_cpu()) {
      SCOPED_TRACE(std::string(name) + " on " + on->caps().adapter);
      LoadOptions options;
      options.device = on;
      auto plain = Session::load(fixture(name), options);
      ASSERT_TRUE(plain.ok()) << plain.status().message();
      const Inputs inputs(plain->methods().front());
      const auto want = plain->run("forward", inputs.values);
      ASSERT_TRUE(want.ok()) << want.status().message();

      const auto device = std::make_shared<gpu::LateDevice>(on, 3);
      options.device = device;
      const LateFile file(fixture(name));
      SessionLoad load(file.source, {}, options);
      EXPECT_GT(turns(load), 0);
      Session session = load.take();
      for (int repeat = 0; repeat < 2; ++repeat) {
        auto run = session.start("forward", inputs.values);
        ASSERT_TRUE(run.ok()) << run.status().message();
        EXPECT_EQ(session.start("forward", inputs.values).status().code(), Code::kInvalidArgument)
            << "while one is under way";
        EXPECT_EQ(session.reset().code(), Code::kInvalidArgument);
        EXPECT_GE(turns(*run), 0);
        EXPECT_EQ(bytes_of(run->outputs()), bytes_of(*want));
      }
      EXPECT_EQ(device->idled(), 0U) << "somebody waited";
    }
  }
}

TEST(Jobs, ARunThatIsDroppedLeavesRoomForTheNext) {
  const auto device = std::make_shared<gpu::LateDevice>(gpu::shared_device(), 5);
  LoadOptions options;
  options.device = device;
  const LateFile file(fixture("ops/mixed_cumsum"));
  SessionLoad load(file.source, {}, options);
  ASSERT_GE(turns(load), 0);
  Session session = load.take();
  const Inputs inputs(session.methods().front());
  std::vector<std::byte> want;
  for (int dropped_after = 0; dropped_after < 8; ++dropped_after) {
    {
      auto run = session.start("forward", inputs.values);
      ASSERT_TRUE(run.ok()) << run.status().message();
      for (int i = 0; i < dropped_after; ++i) ASSERT_TRUE(run->advance().ok());
    }
    auto run = session.start("forward", inputs.values);
    ASSERT_TRUE(run.ok()) << run.status().message();
    ASSERT_GE(turns(*run), 0);
    if (want.empty()) want = bytes_of(run->outputs());
    EXPECT_EQ(bytes_of(run->outputs()), want);
  }
}

// What a run that fails half-way says of the state, and that the next one works.
TEST(Jobs, AFailedRunSaysWhetherItChangedState) {
  for (const bool has_state : {false, true}) {
    const auto device = std::make_shared<gpu::LateDevice>(gpu::shared_device(), 5);
    LoadOptions options;
    options.device = device;
    const LateFile file(fixture(has_state ? "llm/qwen3_like_q4" : "ops/mixed_cumsum"));
    SessionLoad load(file.source, {}, options);
    ASSERT_GE(turns(load), 0);
    Session session = load.take();
    Inputs inputs(session.methods().front());
    const int64_t zero = 0;
    if (has_state) inputs.values[1] = tensor<int64_t>({1}, std::span<const int64_t>(&zero, 1));
    device->fail_next_read();
    auto run = session.start("forward", inputs.values);
    ASSERT_TRUE(run.ok()) << run.status().message();
    EXPECT_EQ(error_of(*run), has_state ? "the read failed; state such as caches was changed "
                                          "before that: reset it"
                                        : "the read failed");
    auto next = session.start("forward", inputs.values);
    ASSERT_TRUE(next.ok()) << next.status().message();
    EXPECT_GE(turns(*next), 0);
  }
}

TEST(Jobs, OutputsCanBeLeftOut) {
  auto session = [] {
    LoadOptions options;
    options.device = gpu::shared_device();
    options.sampling = true;
    return Session::load(fixture("llm/qwen3_like_q4"), options);
  }();
  ASSERT_TRUE(session.ok()) << session.status().message();
  const std::vector<int64_t> tokens = {1, 2, 3};
  const int64_t zero = 0;
  const std::vector<int32_t> settings(16);
  const Value inputs[] = {tensor<int64_t>({1, 3}, tokens),
                          tensor<int64_t>({1}, std::span<const int64_t>(&zero, 1)),
                          tensor<int32_t>({16}, settings)};
  const auto all = session->run("forward", inputs);
  ASSERT_TRUE(all.ok()) << all.status().message();
  const int32_t token = (*all)[1].tensor()->as<int32_t>()[0];
  ASSERT_NE((*all)[0].tensor(), nullptr);
  const uint64_t before = gpu::shared_device()->counters().read_bytes;
  const auto some = session->run("forward", inputs, {.outputs = 2});
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_EQ((*some)[0].tensor(), nullptr);
  EXPECT_EQ((*some)[1].tensor()->as<int32_t>()[0], token);
  EXPECT_LE(gpu::shared_device()->counters().read_bytes - before, 16U);
  EXPECT_TRUE(session->run("forward", inputs, {.outputs = 0}).ok());
}

TEST(Jobs, AFailingSourceEndsALoadWithItsError) {
  const LateFile file(fixture("llm/qwen3_like_q4"));
  const auto bytes = std::as_bytes(std::span(file.bytes));
  LoadOptions options;
  options.device = std::make_shared<gpu::LateDevice>(gpu::shared_device(), 5);
  const auto source = std::make_shared<testing::LateSource>("weights", bytes, 2);
  source->fail_at(bytes.size() - 100);
  SessionLoad load(source, {}, options);
  for (int i = 0; i < kMostTurns; ++i) {
    const auto done = load.advance();
    if (done.ok()) {
      ASSERT_FALSE(*done);
      continue;
    }
    EXPECT_EQ(done.status().code(), Code::kIo);
    EXPECT_NE(done.status().message().find("weights"), std::string_view::npos)
        << done.status().message();
    return;
  }
  FAIL() << "not finished after " << kMostTurns << " turns";
}

}  // namespace
}  // namespace pteryx

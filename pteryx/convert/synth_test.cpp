// Programs with random weights. SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "pteryx/convert/convert.h"
#include "pteryx/convert/testing/tiny_model.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/pteryx.h"

namespace pteryx::convert {
namespace {

using testing::TempFolder;

TEST(Synth, SeedDecides) {
  const TempFolder folder;
  for (const auto& [name, seed] : {std::pair("a", 1), std::pair("b", 1), std::pair("c", 2)}) {
    const auto r = synth(folder / name, {.preset = "tiny", .seed = static_cast<uint64_t>(seed)});
    ASSERT_TRUE(r.ok()) << r.status().message();
  }
  EXPECT_EQ(testing::read_file(folder / "a"), testing::read_file(folder / "b"));
  EXPECT_NE(testing::read_file(folder / "a"), testing::read_file(folder / "c"));
}

TEST(Synth, EveryFormatRunsAndStaysSane) {
  for (const Quantize q : {Quantize::kNone, Quantize::kF16, Quantize::kQ8, Quantize::kQ4}) {
    const TempFolder folder;
    ASSERT_TRUE(synth(folder / "m.pte", {.preset = "tiny", .convert = {.quantize = q}}).ok());
    auto session = Session::load(folder / "m.pte", {.device = gpu::shared_device()});
    ASSERT_TRUE(session.ok()) << session.status().message();
    const int64_t start[] = {0};
    const int64_t tokens[] = {3, 17, 5, 29, 11, 2, 30, 8, 21, 14, 1, 9};
    const Value inputs[] = {tensor<int64_t>({1, 12}, std::span<const int64_t>(tokens)),
                            tensor<int64_t>({1}, std::span<const int64_t>(start))};
    const auto out = session->run("forward", inputs);
    ASSERT_TRUE(out.ok()) << out.status().message();
    double sum = 0;
    const auto logits = out->front().tensor()->as<float>();
    for (const float v : logits) sum += static_cast<double>(v) * v;
    const double rms = std::sqrt(sum / static_cast<double>(logits.size()));
    EXPECT_GT(rms, 0.3);
    EXPECT_LT(rms, 3);
  }
}

TEST(Synth, UnknownPreset) {
  const TempFolder folder;
  const auto r = synth(folder / "m.pte", {.preset = "x"});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.status().message(),
            "preset 'x': llama-3.1-8b, llama-3.2-1b, qwen3-0.6b, tiny are known");
}

// Nothing is written: how much it would be is known before.
TEST(Synth, PresetsHaveTheWeightsOfTheirModels) {
  struct Model {
    std::string_view preset;
    double weights;
    double tied;  // of them, of the table that is also the output
  };
  const Model models[] = {{"llama-3.1-8b", 8.030e9, 0},
                          {"llama-3.2-1b", 1.236e9, 128256 * 2048.0},
                          {"qwen3-0.6b", 0.596e9, 151936 * 1024.0}};
  for (const Model& m : models) {
    const TempFolder folder;
    uint64_t bytes = 0;
    const auto stop = [&](uint64_t, uint64_t total) {
      bytes = total;
      return false;
    };
    const ConvertOptions options = {.quantize = Quantize::kQ4, .max_context = 64, .progress = stop};
    const auto r = synth(folder / "m.pte", {.preset = std::string(m.preset), .convert = options});
    ASSERT_EQ(r.status().code(), Code::kCancelled) << r.status().message();
    // 4 bits, and an f32 scale for 32 of them; a tied table has its scales in two orders.
    const double want = m.weights * 5 / 8 + m.tied / 8;
    EXPECT_NEAR(static_cast<double>(bytes), want, want * 0.005) << m.preset;
  }
}

}  // namespace
}  // namespace pteryx::convert

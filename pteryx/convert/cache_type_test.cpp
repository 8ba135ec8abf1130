// KV caches of converted programs. SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/convert/convert.h"
#include "pteryx/convert/testing/tiny_model.h"
#include "pteryx/gpu/testing/compute.h"
#include "pteryx/pteryx.h"

namespace pteryx::convert {
namespace {

using testing::Biases;
using testing::Grid;
using testing::TempFolder;
using testing::TinyModel;

const std::vector<int64_t> kTokens = {3, 17, 5, 29, 11, 2, 30, 8, 21, 14, 1, 9};

// The caches have the type that the program is loaded with, whatever the file says: the same bits.
TEST(Convert, CachesCanHaveAnotherTypeThanTheFiles) {
  const TempFolder folder;
  const TinyModel m = testing::make_model(testing::tiny_shape("llama", RopeLayout::kHalves),
                                          Grid::kSigned4, Biases::kNone);
  testing::write_folder(m, folder / "hf");
  struct Outcome {
    uint64_t state_bytes = 0;
    std::vector<float> logits;
    bool operator==(const Outcome&) const = default;
  };
  const auto run = [&](DType of_file, std::optional<DType> loaded_as) {
    Outcome outcome;
    const std::string path = folder / "m.pte";
    EXPECT_TRUE(convert(folder / "hf", path, {.quantize = Quantize::kQ4, .kv_type = of_file}).ok());
    auto session = Session::load(path, {.device = gpu::shared_device(), .kv_cache = loaded_as});
    EXPECT_TRUE(session.ok()) << session.status().message();
    if (!session.ok()) return outcome;
    for (const MethodInfo& method : session->methods()) outcome.state_bytes += method.state_bytes;
    int64_t position = 0;
    for (const int64_t n : {5, 1, 1, 5}) {
      const std::span<const int64_t> chunk(kTokens.data() + position, static_cast<size_t>(n));
      const Value inputs[] = {tensor<int64_t>({1, n}, chunk),
                              tensor<int64_t>({1}, std::span<const int64_t>(&position, 1))};
      const auto out = session->run("forward", inputs);
      EXPECT_TRUE(out.ok()) << out.status().message();
      if (!out.ok()) return outcome;
      const auto y = out->front().tensor()->as<float>();
      outcome.logits.insert(outcome.logits.end(), y.begin(), y.end());
      position += n;
    }
    return outcome;
  };
  const Outcome f32 = run(DType::kF32, {});
  const Outcome f16 = run(DType::kF16, {});
  EXPECT_EQ(f32.state_bytes, 2 * f16.state_bytes);
  EXPECT_NE(f32.logits, f16.logits);
  EXPECT_TRUE(run(DType::kF32, DType::kF16) == f16);
  EXPECT_TRUE(run(DType::kF16, DType::kF16) == f16);
  EXPECT_TRUE(run(DType::kF16, DType::kF32) == f32);
  EXPECT_TRUE(run(DType::kF32, DType::kF32) == f32);
}

}  // namespace
}  // namespace pteryx::convert

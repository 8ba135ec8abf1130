// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/conversion.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "pteryx/base/testing/late_source.h"
#include "pteryx/convert/sha256.h"
#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert {
namespace {

using pteryx::testing::LateSource;
using testing::Biases;
using testing::Blocks;
using testing::Grid;
using testing::TempFolder;
using testing::TinyModel;

class TextOutput final : public ProgramOutput {
 public:
  Status write_at(uint64_t offset, Bytes bytes) override {
    if (text.size() < offset + bytes.size()) text.resize(offset + bytes.size());
    std::copy_n(reinterpret_cast<const char*>(bytes.data()), bytes.size(),
                text.begin() + static_cast<ptrdiff_t>(offset));
    return {};
  }
  std::string text;
};

// Until it is done or fails; the fraction never decreases.
Status finish(Conversion& conversion) {
  double fraction = 0;
  for (;;) {
    const Result<bool> done = conversion.advance();
    if (!done.ok()) return Status(done.status().code(), std::string(done.status().message()));
    EXPECT_GE(conversion.fraction(), fraction);
    fraction = conversion.fraction();
    EXPECT_LE(fraction, 1);
    if (*done) return {};
  }
}

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Conversion, WritesWhatConvertWrites) {
  struct Case {
    std::string_view architecture;
    RopeLayout rope;
    Biases biases;
    Grid grid;
    Blocks blocks;
    ConvertOptions options;
  };
  const Case cases[] = {
      {"llama", RopeLayout::kPairs, Biases::kNone, Grid::kSigned4, Blocks::kQ4_0, {}},
      {"llama", RopeLayout::kPairs, Biases::kNone, Grid::kSigned4, Blocks::kF32, {}},
      {"qwen2", RopeLayout::kHalves, Biases::kQkv, Grid::kSigned8, Blocks::kF32, {}},
      {"qwen3",
       RopeLayout::kHalves,
       Biases::kNone,
       Grid::kSigned8,
       Blocks::kF32,
       {.quantize = Quantize::kF16}},
      {"qwen3",
       RopeLayout::kHalves,
       Biases::kNone,
       Grid::kSigned8,
       Blocks::kF32,
       {.quantize = Quantize::kNone}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.architecture);
    const TempFolder folder;
    const TinyModel m = testing::make_model(
        testing::tiny_shape(std::string(c.architecture), c.rope), c.grid, c.biases);
    const std::string gguf = testing::gguf_of(m, c.blocks).finish();
    testing::write_file(folder / "m.gguf", gguf);
    ASSERT_TRUE(convert(folder / "m.gguf", folder / "m.pte", c.options).ok());
    const std::string want = testing::read_file(folder / "m.pte");
    for (const int late : {0, 2}) {
      TextOutput output;
      Conversion conversion(std::make_shared<LateSource>("m.gguf", bytes_of(gguf), late), c.options,
                            output);
      const Status s = finish(conversion);
      ASSERT_TRUE(s.ok()) << s.message();
      EXPECT_EQ(conversion.file_bytes(), want.size());
      EXPECT_EQ(conversion.fraction(), 1);
      EXPECT_TRUE(output.text == want) << "late " << late;
    }
  }
}

// The npm package's tests know the same hash (web/tests/support/gguf_programs.mjs): whatever
// compiles the converter, it writes the same bytes.
TEST(Conversion, ProgramsAreTheSameBytesEverywhere) {
  const std::string gguf =
      testing::read_file(std::string(PTERYX_TEST_DATA) + "/fixtures/convert/llama.gguf");
  TextOutput output;
  Conversion conversion(std::make_shared<LateSource>("llama.gguf", bytes_of(gguf), 0), {}, output);
  const Status s = finish(conversion);
  ASSERT_TRUE(s.ok()) << s.message();
  Sha256 hash;
  hash.add(bytes_of(output.text));
  EXPECT_EQ(hash.hex(), "2c0507abf3764ed9ccf8bff41ab928734a0986317b688e83e494895b77a42227");
}

void expect_refused(const std::string& gguf, Code code, std::string_view text) {
  TextOutput output;
  Conversion conversion(std::make_shared<LateSource>("m.gguf", bytes_of(gguf), 1), {}, output);
  const Status s = finish(conversion);
  EXPECT_EQ(s.code(), code);
  EXPECT_NE(s.message().find(text), std::string_view::npos) << s.message();
}

TEST(Conversion, RefusesWhatConvertRefuses) {
  const TinyModel m =
      testing::make_model(testing::tiny_shape("llama", RopeLayout::kPairs), Grid::kSigned4);
  const std::string gguf = testing::gguf_of(m, Blocks::kQ4_0).finish();
  expect_refused(gguf.substr(0, 100), Code::kInvalidProgram, "GGUF: ");
  expect_refused(gguf.substr(0, gguf.size() - 1000), Code::kInvalidProgram, "while reading m.gguf");
  expect_refused("GGUF", Code::kInvalidProgram, "truncated in the header at byte 4 of 4");
  expect_refused(testing::gguf_of(m, Blocks::kQ4_0, testing::Texts::kNone).finish(),
                 Code::kInvalidProgram, "no vocabulary");
  testing::GgufBuilder split = testing::gguf_of(m, Blocks::kQ4_0);
  split.u32("split.no", 0);
  split.u32("split.count", 2);
  split.u32("split.tensors.count", 4);
  expect_refused(split.finish(), Code::kUnsupported, "part 1 of 2 of a split model");
}

TEST(Conversion, EndsWithTheSourcesError) {
  const TinyModel m =
      testing::make_model(testing::tiny_shape("llama", RopeLayout::kPairs), Grid::kSigned4);
  const std::string gguf = testing::gguf_of(m, Blocks::kQ4_0).finish();
  auto source = std::make_shared<LateSource>("m.gguf", bytes_of(gguf), 1);
  source->fail_at(gguf.size() - 1);
  TextOutput output;
  Conversion conversion(source, {}, output);
  const Status s = finish(conversion);
  EXPECT_EQ(s.code(), Code::kIo);
  EXPECT_NE(s.message().find("cannot be read"), std::string_view::npos) << s.message();
}

}  // namespace
}  // namespace pteryx::convert

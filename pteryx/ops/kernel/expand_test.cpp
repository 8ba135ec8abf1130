// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/kernel/expand.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace pteryx::ops {
namespace {

using Files = std::map<std::string, std::string, std::less<>>;

KernelFiles in(const Files& files) {
  return [&files](std::string_view name) -> std::optional<std::string_view> {
    const auto it = files.find(name);
    if (it == files.end()) return std::nullopt;
    return it->second;
  };
}

std::string expanded(const Files& files, const Options& options = {}) {
  const auto kernel = expand_kernel("k.wgsl", options, in(files));
  return kernel.ok() ? kernel->code : std::string(kernel.status().message());
}

TEST(Expand, TextStaysAsItIs) {
  const std::string text = "fn main() { let a = b[1u] & 3u; }\n\n// end\n";
  EXPECT_EQ(expanded({{"k.wgsl", text}}), text);
}

TEST(Expand, NamesAndExpressionsStandForTheirValues) {
  const Files f = {{"k.wgsl",
                    "#option rows 1..8\n#option type f32 | f16\n#option apply text\n"
                    "#let more = rows * 2 + 1\n"
                    "var a: array<$type, $(rows - 1)>; acc_$(rows)_x $more { return $apply; }\n"}};
  EXPECT_EQ(expanded(f, {{"rows", 4}, {"type", "f16"}, {"apply", "a + b"}}),
            "var a: array<f16, 3>; acc_4_x 9 { return a + b; }\n");
}

TEST(Expand, BranchesAreTakenByOptions) {
  const Files f = {{"k.wgsl",
                    "#option x plain | norm | codes\n#option bias\n"
                    "#if x == norm && !bias\nA\n#elif x == codes || bias\nB\n#if bias\nb\n#end\n"
                    "#else\nC\n#end\nD\n"}};
  EXPECT_EQ(expanded(f, {{"x", "norm"}, {"bias", 0}}), "A\nD\n");
  EXPECT_EQ(expanded(f, {{"x", "norm"}, {"bias", 1}}), "B\nb\nD\n");
  EXPECT_EQ(expanded(f, {{"x", "codes"}, {"bias", 0}}), "B\nD\n");
  EXPECT_EQ(expanded(f, {{"x", "plain"}, {"bias", 0}}), "C\nD\n");
}

TEST(Expand, LoopsRepeatTheirLines) {
  const Files f = {
      {"k.wgsl",
       "#option n 0..9\n#for i in 0..n\na$i\n#for j in i + 1..n\nb$(i)_$j\n#end\n#end\nz\n"}};
  EXPECT_EQ(expanded(f, {{"n", 3}}), "a0\nb0_1\nb0_2\na1\nb1_2\na2\nz\n");
  EXPECT_EQ(expanded(f, {{"n", 0}}), "z\n");
}

TEST(Expand, FilesAreIncludedOnceOrWithValues) {
  const Files f = {
      {"k.wgsl",
       "#option x plain | norm\n#option rows 1..8\n#include \"common.wgsl\"\n"
       "#include \"common.wgsl\"\n#include \"x_$(x).wgsl\"\n"
       "#include \"load.wgsl\" name=a type=f32\n#include \"load.wgsl\" name=b type=f16\n"},
      {"common.wgsl", "common\n"},
      {"x_norm.wgsl", "#option rows 2..8\nnorm $rows\n"},
      {"x_plain.wgsl", "plain\n"},
      {"load.wgsl", "#option name text\n#option type f32 | f16\nload_$name -> $type, $rows\n"}};
  EXPECT_EQ(expanded(f, {{"x", "norm"}, {"rows", 2}}),
            "common\nnorm 2\nload_a -> f32, 2\nload_b -> f16, 2\n");
  EXPECT_EQ(expanded(f, {{"x", "norm"}, {"rows", 1}}),
            "x_norm.wgsl:1: option rows: expected 2..8, got 1");
}

TEST(Expand, TensorsAreBoundInTheirOrder) {
  const Files f = {
      {"k.wgsl",
       "#option bias\n#tensor x read f32 | f16\n#if bias\n#tensor bias raw vec4<f32>\n#end\n"
       "#tensor y words\n#tensor parts raw_write u32\n"},
      {"common/tensor.wgsl",
       "#option name text\n#option binding 1..32\n#option access read | words | elements\n"
       "#option type bool | u8 | i8 | i32 | f16 | f32\n$binding $name $access $type\n"}};
  Options options = {{"bias", 1}, {"x_type", "f16"}, {"y_type", "i8"}};
  EXPECT_EQ(expanded(f, options),
            "1 x read f16\n@group(0) @binding(2) var<storage, read> bias: array<vec4<f32>>;\n"
            "3 y words i8\n@group(0) @binding(4) var<storage, read_write> parts: array<u32>;\n");
  const auto kernel = expand_kernel("k.wgsl", options.set("bias", 0), in(f));
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  ASSERT_EQ(kernel->tensors.size(), 3U);
  EXPECT_EQ(kernel->tensors[1].name, "y");
  EXPECT_EQ(kernel->tensors[1].access, KernelTensor::Access::kWords);
  EXPECT_TRUE(kernel->tensors[2].is_written());
  EXPECT_EQ(expanded(f, options.set("x_type", "i8")),
            "k.wgsl:2: option x_type: expected f32 | f16, got i8");
  const auto variants = kernel_variants("k.wgsl", {}, in(f), 100);
  ASSERT_TRUE(variants.ok()) << variants.status().message();
  EXPECT_EQ(variants->size(), 2U * 2U * 6U);
}

TEST(Expand, KernelsSayWhatTheyNeed) {
  const Files f = {{"k.wgsl", "#option m\n#enable f16\n#if m\n#enable subgroup_matrix\n#end\n"}};
  for (const int64_t m : {0, 1}) {
    const auto kernel = expand_kernel("k.wgsl", {{"m", m}}, in(f));
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    EXPECT_TRUE(kernel->f16);
    EXPECT_FALSE(kernel->subgroups);
    EXPECT_EQ(kernel->subgroup_matrix, m == 1);
  }
}

TEST(Expand, MistakesAreNamedWithTheirPlace) {
  struct Case {
    std::string text;
    Options options;
    std::string message;
  };
  const Case cases[] = {
      {"\n#iff a\n", {}, "k.wgsl:2: there is no directive '#iff'"},
      {"#if 1\n", {}, "k.wgsl:1: #if without #end"},
      {"#for i in 0..2\n", {}, "k.wgsl:1: #for without #end"},
      {"#for i in 0..2\n#else\n#end\n", {}, "k.wgsl:2: '#else' in a #for"},
      {"a\n#end\n", {}, "k.wgsl:2: '#end' where nothing is open"},
      {"#if 0\n#else\n#else\n#end\n", {}, "k.wgsl:3: '#else' behind #else"},
      {"#for i 0..2\n#end\n", {}, "k.wgsl:1: expected '#for NAME in FIRST..END'"},
      {"#for i in 0..9999\n#end\n", {}, "k.wgsl:1: 9999 turns, expected at most 4096"},
      {"let a = $b;\n", {}, "k.wgsl:1: '$b' has no value"},
      {"let a = $(1 + ;\n", {}, "k.wgsl:1: '$(' without ')'"},
      {"let a = $(1 +);\n", {}, "k.wgsl:1: missing value in '1 +'"},
      {"let a = $(1 / 0);\n", {}, "k.wgsl:1: division by 0 in '1 / 0'"},
      {"let a = $(2 2);\n", {}, "k.wgsl:1: unexpected '2' in '2 2'"},
      {"#option a\n", {}, "k.wgsl:1: option a is not given"},
      {"#option a\n", {{"a", 2}}, "k.wgsl:1: option a: expected 0 or 1, got 2"},
      {"#option a x | y\n", {{"a", "z"}}, "k.wgsl:1: option a: expected x | y, got z"},
      {"#option a 3..1\n", {{"a", 2}}, "k.wgsl:1: option a: '3..1' is no range"},
      {"#option a\n#option a\n", {{"a", 1}}, "k.wgsl:2: 'a' has a value already"},
      {"#option b\n#option a x | b\n",
       {{"a", "x"}, {"b", 1}},
       "k.wgsl:2: option a: 'b' is a name already"},
      {"#option a x | a\n", {{"a", "x"}}, "k.wgsl:1: option a: 'a' is a name already"},
      {"#option a x | b\n#option b\n",
       {{"a", "x"}, {"b", 1}},
       "k.wgsl:2: 'b' is a word of option a"},
      {"#option a x | b\n#let b = 1\n", {{"a", "x"}}, "k.wgsl:2: 'b' is a word of option a"},
      {"#option a x | i\n#for i in 0..1\n#end\n",
       {{"a", "x"}},
       "k.wgsl:2: 'i' is a word of option a"},
      {"text\n", {{"a", 1}}, "k.wgsl:1: it has no option 'a'"},
      {"#option a x | y\n#if a == z\n#end\n",
       {{"a", "x"}},
       "k.wgsl:2: there is no 'z' in 'a == z'"},
      {"#if a == b\n#end\n", {}, "k.wgsl:1: there is no 'a' in 'a == b'"},
      {"#option a x | y\n#if a + 1\n#end\n", {{"a", "x"}}, "k.wgsl:2: 'x' is no number in 'a + 1'"},
      {"#option a 1..4\n#require a % 2 == 0\n",
       {{"a", 3}},
       "k.wgsl:2: with a=3 it is not so that a % 2 == 0"},
      {"#include \"b.wgsl\"\n", {}, "k.wgsl:1: there is no file 'b.wgsl'"},
      {"#include b\n", {}, "k.wgsl:1: expected #include \"FILE\""},
      {"#include \"k.wgsl\" a=1\n", {}, "k.wgsl: more than 16 files in files"},
      {"#enable f64\n", {}, "k.wgsl:1: 'f64': expected f16, subgroups or subgroup_matrix"},
      {"#tensor x read\n", {}, "k.wgsl:1: option x_type is not given"},
      {"#tensor x wread\n",
       {},
       "k.wgsl:1: tensor x: 'wread': expected read, words, elements, raw or raw_write"},
      {"#tensor x raw\n", {}, "k.wgsl:1: tensor x: expected a type"},
      {"#let a 1\n", {}, "k.wgsl:1: expected '#let NAME = EXPRESSION'"},
  };
  for (const Case& c : cases) EXPECT_EQ(expanded({{"k.wgsl", c.text}}, c.options), c.message);
}

TEST(Expand, VariantsAreAllThatAreNotRefused) {
  const Files f = {{"k.wgsl",
                    "#option rows 1..4\n#option x plain | norm\n#option bias\n#option apply text\n"
                    "#require rows % 2 == 0 || x == plain\n$apply\n"}};
  const auto variants = kernel_variants("k.wgsl", {{"apply", "a"}}, in(f), 100);
  ASSERT_TRUE(variants.ok()) << variants.status().message();
  EXPECT_EQ(variants->size(), (4U + 2U) * 2U);
  for (const Options& o : *variants) EXPECT_EQ(expanded(f, o), "a\n") << o.describe();
  EXPECT_EQ(kernel_variants("k.wgsl", {}, in(f), 15).status().message(),
            "k.wgsl: more than 15 combinations of options");
}

}  // namespace
}  // namespace pteryx::ops

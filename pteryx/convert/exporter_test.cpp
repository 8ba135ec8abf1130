// What is written for a model is what ExecuTorch's exporter wrote for one of the same shape: call
// by call, argument by argument.
// SPDX-License-Identifier: BSD-3-Clause
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/convert/convert.h"
#include "pteryx/convert/testing/tiny_model.h"
#include "pteryx/program/delegate.h"
#include "pteryx/program/program.h"

namespace pteryx::convert {
namespace {

// A value as text: equal values of two graphs read the same, whatever their ids.
std::string text_of(const program::Blob& b, uint32_t id) {
  const program::BlobValue& v = b.values[id];
  if (const auto* t = std::get_if<program::BlobTensor>(&v)) {
    return fmt::format("{}{}{}", name(t->dtype), to_string(t->dims),
                       t->constant ? " constant" : "");
  }
  if (const auto* i = std::get_if<int64_t>(&v)) return fmt::format("{}", *i);
  if (const auto* d = std::get_if<double>(&v)) return fmt::format("{}", *d);
  if (const auto* f = std::get_if<bool>(&v)) return *f ? "true" : "false";
  if (std::holds_alternative<program::BlobSymInt>(v)) return "symint";
  if (const auto* list = std::get_if<program::BlobValueList>(&v)) {
    std::string text = "[";
    for (const uint32_t item : list->items) text += text_of(b, item) + "; ";
    return text + "]";
  }
  return "null";
}

// Which earlier call, counted backwards, made a value; constants and inputs are their own makers.
std::vector<std::string> calls_of(const program::Blob& b) {
  std::vector<std::string> out;
  std::map<uint32_t, size_t> maker;
  for (const program::BlobCall& c : b.chain) {
    std::string text = c.name + "(";
    for (size_t i = 0; i < c.args.size(); ++i) {
      const auto made = maker.find(c.args[i]);
      text += text_of(b, c.args[i]);
      if (made != maker.end()) text += fmt::format(" of call {}", made->second);
      text += i + 1 < c.args.size() ? ", " : ")";
    }
    const uint32_t result = c.args.back();
    maker[result] = out.size();
    if (const auto* list = std::get_if<program::BlobValueList>(&b.values[result])) {
      for (const uint32_t item : list->items) maker[item] = out.size();
    }
    out.push_back(std::move(text));
  }
  return out;
}

std::vector<std::string> program_calls(const std::string& path) {
  const auto p = program::Program::open(path);
  EXPECT_TRUE(p.ok()) << p.status().message();
  if (!p.ok()) return {};
  const program::MethodRecord* forward = p->find("forward");
  const auto blob = program::parse_blob(forward->delegates.front(), p->named_data());
  EXPECT_TRUE(blob.ok()) << blob.status().message();
  return blob.ok() ? calls_of(*blob) : std::vector<std::string>();
}

// The shape of the committed programs.
ModelShape exported_shape(std::string architecture) {
  ModelShape s = testing::tiny_shape(std::move(architecture), RopeLayout::kHalves);
  s.hidden = 96;
  s.heads = 6;
  s.head_size = 32;
  s.ffn = 160;
  s.vocabulary = 300;
  s.context = 160;
  s.norm_eps = 1e-6;
  s.rope_theta = 1e6;
  s.tied = false;
  return s;
}

void expect_as_exported(const std::string& exported, const ModelShape& shape,
                        testing::Biases biases, Quantize quantize) {
  const testing::TempFolder folder;
  testing::write_folder(testing::make_model(shape, testing::Grid::kSigned4, biases), folder / "hf");
  const auto r = convert(folder / "hf", folder / "m.pte", {.quantize = quantize, .max_tokens = 95});
  ASSERT_TRUE(r.ok()) << r.status().message();
  const auto got = program_calls(folder / "m.pte");
  const auto want = program_calls(std::string(PTERYX_TEST_DATA) + "/fixtures/llm/" + exported);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i]) << "call " << i;
}

TEST(Exporter, Qwen2InF32) {
  expect_as_exported("qwen2_like_fp32.pte", exported_shape("qwen2"), testing::Biases::kQkv,
                     Quantize::kNone);
}

TEST(Exporter, Qwen3In4Bits) {
  expect_as_exported("qwen3_like_q4.pte", exported_shape("qwen3"), testing::Biases::kNone,
                     Quantize::kQ4);
}

}  // namespace
}  // namespace pteryx::convert

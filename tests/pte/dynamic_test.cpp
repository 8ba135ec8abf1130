// Inputs of changing sizes. Of every committed program that has some: shrinking, growing back and
// alternating give the bits of a session that was loaded for that one call.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "programs.h"

namespace pteryx::testing {
namespace {

using Json = nlohmann::json;

std::string folder() { return std::string(PTERYX_TESTS_DIR) + "/fixtures/ops/"; }

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The inputs of one recorded run.
struct Inputs {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Value> values;

  explicit Inputs(const Json& run) {
    for (const Json& i : run["inputs"]) {
      Dims dims;
      for (const int64_t d : i["shape"]) dims.push_back(d);
      const bool wide = i["dtype"] == "int64";
      const std::string file = read_text(folder() + i["file"].get<std::string>());
      const size_t size = static_cast<size_t>(numel(dims)) * (wide ? 8 : 4);
      bytes.emplace_back(size);
      std::memcpy(bytes.back().data(), file.data() + i["offset"].get<size_t>(), size);
      values.emplace_back(TensorView{.dtype = wide ? DType::kI64 : DType::kF32,
                                     .dims = dims,
                                     .data = bytes.back().data(),
                                     .size_bytes = size});
    }
  }
};

std::string run(Session& session, const Inputs& inputs) {
  const auto outputs = session.run("forward", inputs.values);
  if (!outputs.ok()) return std::string(outputs.status().message());
  std::string all;
  for (const Value& v : *outputs) {
    const TensorView& t = *v.tensor();
    all += to_string(t.dims);
    all.append(static_cast<const char*>(t.data), t.size_bytes);
  }
  return all;
}

std::vector<Json> dynamic_cases() {
  std::vector<Json> found;
  const Json manifest = Json::parse(read_text(folder() + "manifest.json"));
  for (const Json& c : manifest["cases"]) {
    if (c["suite"] == "dynamic") found.push_back(c);
  }
  return found;
}

TEST(Dynamic, ShrinkingGrowingAndAlternatingEqualFreshSessions) {
  const std::vector<Json> cases = dynamic_cases();
  ASSERT_GE(cases.size(), 10U);
  for (const Json& c : cases) {
    const std::string name = c["name"];
    SCOPED_TRACE(name);
    const auto open = [&] { return Session::load(folder() + name + ".pte", {.device = device()}); };
    std::vector<Inputs> inputs;
    std::vector<std::string> want;
    for (const Json& r : c["runs"]) {
      inputs.emplace_back(r);
      auto fresh = open();
      ASSERT_TRUE(fresh.ok()) << fresh.status().message();
      want.push_back(run(*fresh, inputs.back()));
    }
    auto session = open();
    ASSERT_TRUE(session.ok());
    // Every run after every other, and after itself.
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (size_t j = 0; j < inputs.size(); ++j) {
        EXPECT_EQ(run(*session, inputs[i]), want[i]) << "run " << i;
        EXPECT_EQ(run(*session, inputs[j]), want[j]) << "run " << j << " after run " << i;
      }
    }
  }
}

// a and c have one size, b has its own: a + c, and b behind a. Sizes that disagree are refused, and
// do not disturb the runs after them.
TEST(Dynamic, InputsAgreeOrHaveSizesOfTheirOwn) {
  constexpr auto kAnySize = DelegateProgram::Size::kDynamic;
  DelegateProgram p;
  const int32_t a = p.input(vk::VkDataType::FLOAT32, {6, 3}, kAnySize);
  const int32_t b = p.input(vk::VkDataType::FLOAT32, {4, 3}, kAnySize);
  const int32_t c = p.input(vk::VkDataType::FLOAT32, {6, 3}, kAnySize);
  const int32_t sum = p.floats({6, 3});
  const int32_t joined = p.floats({10, 3});
  p.blob.add_call("aten.add.Tensor", {a, c, p.blob.add_int(1), sum});
  p.blob.add_call("aten.cat.default", {p.blob.add_value_list({a, b}), p.blob.add_int(0), joined});
  p.output(sum);
  p.output(joined);
  auto session = load_bytes(p.finish());
  ASSERT_TRUE(session.ok()) << session.status().message();
  struct Rows {
    int64_t a, b, c;
  };
  const Rows calls[] = {{6, 4, 6}, {2, 4, 2}, {2, 1, 2}, {2, 1, 3}, {5, 1, 5},
                        {6, 1, 2}, {4, 3, 4}, {3, 4, 3}, {4, 3, 4}};
  float seed = 0;
  for (const Rows& rows : calls) {
    SCOPED_TRACE(fmt::format("{} {} {}", rows.a, rows.b, rows.c));
    const auto numbers = [&](int64_t n) {
      std::vector<float> v(static_cast<size_t>(3 * n));
      for (float& x : v) x = seed += 0.25F;
      return v;
    };
    std::vector<float> va = numbers(rows.a);
    const std::vector<float> vb = numbers(rows.b);
    const std::vector<float> vc = numbers(rows.c);
    const Value inputs[] = {tensor<float>({rows.a, 3}, va), tensor<float>({rows.b, 3}, vb),
                            tensor<float>({rows.c, 3}, vc)};
    const auto got = session->run("forward", inputs);
    if (rows.a != rows.c) {
      ASSERT_FALSE(got.ok()) << "was accepted";
      EXPECT_EQ(got.status().code(), Code::kInvalidArgument);
      EXPECT_NE(got.status().message().find(
                    fmt::format("a [{}, 3] and b [{}, 3] do not broadcast", rows.a, rows.c)),
                std::string_view::npos)
          << got.status().message();
      continue;
    }
    ASSERT_TRUE(got.ok()) << got.status().message();
    const auto values = [&](size_t i) {
      const auto v = (*got)[i].tensor()->as<float>();
      return std::vector<float>(v.begin(), v.end());
    };
    std::vector<float> want(va.size());
    for (size_t i = 0; i < want.size(); ++i) want[i] = va[i] + vc[i];
    EXPECT_EQ(values(0), want);
    va.insert(va.end(), vb.begin(), vb.end());
    EXPECT_EQ(values(1), va);
  }
}

}  // namespace
}  // namespace pteryx::testing

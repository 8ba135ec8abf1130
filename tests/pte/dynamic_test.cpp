// Every committed program with dynamic inputs: shrinking, growing back and alternating give the
// bits of a session that was loaded for that one call.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <fstream>

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

}  // namespace
}  // namespace pteryx::testing

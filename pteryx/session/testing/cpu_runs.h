// Calls of programs of the fixtures on the CPU, and what comes out as bits.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/cpu_device.h"
#include "pteryx/pteryx.h"

namespace pteryx::testing {

using Bits = std::vector<uint32_t>;

inline Session load_on_cpu(const std::string& name, LoadOptions options = {}) {
  options.device = gpu::cpu_device();
  auto session =
      Session::load(std::string(PTERYX_TEST_DATA) + "/fixtures/" + name + ".pte", options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  if (!session.ok()) std::abort();
  return std::move(session).value();
}

inline void append(Bits& bits, const Result<std::span<const Value>>& outputs) {
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  const auto y = outputs->front().tensor()->as<float>();
  const size_t before = bits.size();
  bits.resize(before + y.size());
  std::memcpy(bits.data() + before, y.data(), y.size_bytes());
}

// A prompt and some tokens behind it, of the models in fixtures/llm.
inline Bits text(Session& session, int64_t prompt = 61, int64_t tokens = 5) {
  Bits bits;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < prompt; ++i) ids.push_back(i * 7 % 299);
  int64_t position = 0;
  for (int64_t step = 0; step <= tokens; ++step) {
    const Value inputs[] = {pteryx::tensor<int64_t>({1, static_cast<int64_t>(ids.size())}, ids),
                            pteryx::tensor<int64_t>({1}, std::span<const int64_t>(&position, 1))};
    append(bits, session.run("forward", inputs));
    position += static_cast<int64_t>(ids.size());
    ids = {step * 11 % 299};
  }
  return bits;
}

// A call of a network with one input.
inline Bits network(Session& session, const Dims& dims) {
  std::vector<float> x(static_cast<size_t>(numel(dims)));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 31) / 16.0F - 0.9F;
  const Value inputs[] = {pteryx::tensor<float>(dims, x)};
  Bits bits;
  append(bits, session.run("forward", inputs));
  return bits;
}

// A program of the fixtures and one way to run it.
struct CpuProgram {
  const char* name;
  Precision precision = Precision::kF32;
  Dims input = {};  // of a network; empty: a language model

  Session load(uint32_t threads) const {
    return load_on_cpu(name, {.precision = precision, .threads = threads});
  }
  Bits run(Session& session) const {
    return input.empty() ? text(session) : network(session, input);
  }
};

inline std::vector<CpuProgram> cpu_programs() {
  return {{"llm/qwen3_like_q4"},
          {"llm/qwen3_like_q4", Precision::kF16},
          {"llm/qwen2_like_fp32"},
          {"llm/qwen2_like_fp32", Precision::kF16},
          {"ops/net_cnn", Precision::kF32, {1, 3, 32, 32}},
          {"ops/net_vit", Precision::kF32, {1, 3, 32, 32}},
          {"ops/net_transformer_block", Precision::kF32, {1, 16, 32}}};
}

}  // namespace pteryx::testing

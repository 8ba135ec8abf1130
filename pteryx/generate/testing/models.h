// Models of the fixtures, for tests: null, and a failure, where one cannot be had.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "pteryx/gpu/testing/compute.h"
#include "pteryx/llm.h"

namespace pteryx::llm {

// On the shared device, unless the options name another.
inline std::unique_ptr<Model> load_fixture(const std::string& name, ModelOptions options = {}) {
  if (options.load.device == nullptr) options.load.device = gpu::shared_device();
  auto m = Model::load(std::string(PTERYX_TEST_DATA) + "/fixtures/llm/" + name + ".pte", options);
  EXPECT_TRUE(m.ok()) << m.status().message();
  return m.ok() ? std::move(m).value() : nullptr;
}

inline std::unique_ptr<Sequence> sequence(Model& model) {
  auto s = Sequence::create(model);
  EXPECT_TRUE(s.ok()) << s.status().message();
  return s.ok() ? std::move(s).value() : nullptr;
}

}  // namespace pteryx::llm

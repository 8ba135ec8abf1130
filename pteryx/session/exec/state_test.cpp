// What states hold at first. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/state.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "pteryx/base/testing/late_source.h"
#include "pteryx/gpu/testing/compute.h"

namespace pteryx::exec {
namespace {

constexpr uint64_t kBytes = 4 * sizeof(float);

StateForm::Cell cell(uint64_t offset) {
  return {.label = "cache",
          .tensor = {.dtype = DType::kF32, .max = {4}, .data = {{0, offset, kBytes}}},
          .host = true,
          .host_bytes = kBytes};
}

void finish(State& state) {
  for (int turn = 0; turn < 10; ++turn) {
    const auto there = state.advance();
    ASSERT_TRUE(there.ok()) << there.status().message();
    if (*there) return;
  }
  FAIL() << "it never ends";
}

TEST(State, EachInitialValueIsReadOnceForAllCellsAndStates) {
  // Zeros, as caches begin with, and something else.
  const std::vector<float> values = {0, 0, 0, 0, 1, 2, 3, 4};
  const auto source = std::make_shared<testing::LateSource>(
      "values", std::as_bytes(std::span(values)), 1);  // each read takes two calls
  const ConstantPool constants(gpu::shared_device(), {source});
  StateForm form;
  for (const uint64_t offset : {uint64_t{0}, uint64_t{0}, kBytes, kBytes, uint64_t{0}})
    form.cells.push_back(cell(offset));
  InitialValues initial(form.cells, constants.sources());
  const auto expect_initial = [&](const State& state) {
    for (uint32_t i = 0; i < form.cells.size(); ++i) {
      const auto* const at = reinterpret_cast<const float*>(state.memory(i));
      EXPECT_TRUE(std::equal(at, at + 4, &values[form.cells[i].tensor.data[0].offset / 4]))
          << "cell " << i;
    }
  };
  State first(form, initial, constants);
  finish(first);
  expect_initial(first);
  EXPECT_EQ(source->asked(), 4);
  std::ranges::fill(std::span(first.memory(2), kBytes), std::byte{7});
  std::ranges::fill(std::span(first.memory(4), kBytes), std::byte{7});
  State second(form, initial, constants);
  finish(second);
  expect_initial(second);
  ASSERT_TRUE(first.reset().ok());
  expect_initial(first);
  EXPECT_EQ(source->asked(), 4);
}

}  // namespace
}  // namespace pteryx::exec

// Checks of refusals: the code and the whole message.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include <gtest/gtest.h>

#include "pteryx/base/status.h"

namespace pteryx::program::testing {

inline void expect_refused(const Status& status, Code code, std::string_view message) {
  EXPECT_EQ(name(status.code()), name(code));
  EXPECT_EQ(status.message(), message);
}

template <typename T>
void expect_refused(const Result<T>& result, Code code, std::string_view message) {
  ASSERT_FALSE(result.ok()) << "expected: " << message;
  expect_refused(result.status(), code, message);
}

template <typename T>
void expect_invalid(const Result<T>& result, std::string_view message) {
  expect_refused(result, Code::kInvalidProgram, message);
}
template <typename T>
void expect_unsupported(const Result<T>& result, std::string_view message) {
  expect_refused(result, Code::kUnsupported, message);
}

}  // namespace pteryx::program::testing

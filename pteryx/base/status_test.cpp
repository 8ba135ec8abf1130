// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/status.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace pteryx {
namespace {

Status fail_if(bool fail) { return fail ? invalid_program("bad byte") : ok_status(); }

Status tries(bool fail, int& steps) {
  PTERYX_TRY(fail_if(fail));
  ++steps;
  return {};
}

Result<std::unique_ptr<int>> make(int v) {
  if (v < 0) return invalid_argument("v: expected 0 or more, got " + std::to_string(v));
  return std::make_unique<int>(v);
}

Result<int> sum(int a, int b) {
  PTERYX_ASSIGN(const auto x, make(a));
  PTERYX_ASSIGN(const auto y, make(b));
  return *x + *y;
}

TEST(Status, OkHasNoMessage) {
  const Status s;
  EXPECT_TRUE(s.ok());
  EXPECT_EQ(s.code(), Code::kOk);
  EXPECT_EQ(s.message(), "");
}

TEST(Status, CarriesCodeAndMessage) {
  const Status s = unsupported("dtype f8");
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(s.code(), Code::kUnsupported);
  EXPECT_EQ(s.message(), "dtype f8");
}

TEST(Status, EachMakerHasItsCode) {
  EXPECT_EQ(invalid_program("").code(), Code::kInvalidProgram);
  EXPECT_EQ(invalid_argument("").code(), Code::kInvalidArgument);
  EXPECT_EQ(device_error("").code(), Code::kDevice);
  EXPECT_EQ(memory_error("").code(), Code::kMemory);
  EXPECT_EQ(io_error("").code(), Code::kIo);
}

TEST(Status, DuringAddsALinePerCaller) {
  const Status s = invalid_program("bad byte").during("reading 'a'").during("loading 'b'");
  EXPECT_EQ(s.message(), "bad byte\n  while reading 'a'\n  while loading 'b'");
}

TEST(Status, DuringLeavesOkAlone) { EXPECT_TRUE(ok_status().during("reading").ok()); }

TEST(Status, TryReturnsTheErrorAndOnlyThen) {
  int steps = 0;
  EXPECT_TRUE(tries(false, steps).ok());
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(tries(true, steps).message(), "bad byte");
  EXPECT_EQ(steps, 1);
}

TEST(Result, AssignUnpacksMoveOnlyValues) {
  EXPECT_EQ(sum(2, 3).value(), 5);
  const auto bad = sum(2, -3);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(), "v: expected 0 or more, got -3");
}

TEST(Code, EveryCodeHasAName) {
  for (const Code c : {Code::kOk, Code::kInvalidProgram, Code::kInvalidArgument, Code::kUnsupported,
                       Code::kDevice, Code::kMemory, Code::kIo, Code::kCancelled}) {
    EXPECT_FALSE(name(c).empty());
    EXPECT_NE(name(c), "unknown");
  }
}

}  // namespace
}  // namespace pteryx

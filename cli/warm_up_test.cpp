// SPDX-License-Identifier: BSD-3-Clause
#include "warm_up.h"

#include <functional>

#include <gtest/gtest.h>

namespace pteryx::cli {
namespace {

// Seconds until calls that take `time(seconds so far)` have settled, and their number.
struct Settled {
  double seconds = 0;
  int calls = 0;
};
Settled settle(const std::function<double(double)>& time) {
  Settling s;
  Settled all;
  for (bool enough = false; !enough; ++all.calls) {
    const double each = time(all.seconds);
    enough = s.add(each);
    all.seconds += each;
  }
  return all;
}

TEST(WarmUp, ShortCallsTakeSomeTenthsOfASecond) {
  const Settled all = settle([](double) { return 0.008; });
  EXPECT_GE(all.seconds, 0.3);
  EXPECT_LE(all.seconds, 0.5);
}

TEST(WarmUp, WaitsForAClockThatRises) {
  const Settled all = settle([](double now) { return now < 0.7 ? 0.03 - now * 0.03 : 0.008; });
  EXPECT_GE(all.seconds, 0.8);
  EXPECT_LE(all.seconds, 1.2);
}

TEST(WarmUp, EndsThoughCallsBecomeFasterStill) {
  const Settled all = settle([](double now) { return 0.1 / (1 + 10 * now); });
  EXPECT_GE(all.seconds, 2);
  EXPECT_LE(all.seconds, 2.2);
}

TEST(WarmUp, LongCallsAreFew) {
  EXPECT_EQ(settle([](double) { return 3.0; }).calls, 1);
  EXPECT_EQ(settle([](double) { return 0.6; }).calls, 2);
}

TEST(WarmUp, OnceAndOnSoftwareWithOneCall) {
  WarmUp warm_up({.software = true});
  int calls = 0;
  const auto call = [&] {
    ++calls;
    return Status();
  };
  EXPECT_TRUE(warm_up.once(call).ok());
  EXPECT_TRUE(warm_up.once(call).ok());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(WarmUp(gpu::Caps()).once([] { return invalid_argument("no"); }).message(), "no");
}

}  // namespace
}  // namespace pteryx::cli

// A language model that draws tokens which its own embedding does not have.
// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "programs.h"

#include "pteryx/session/native/blocking.h"
#include "pteryx/session/steps.h"

namespace pteryx::testing {
namespace {

// The step that was given such a token fails, whether it was brought by the host or never left the
// GPU; the step that drew it does not.
TEST(WideLogits, ATokenWithoutARowFailsTheStepThatReadsIt) {
  const TinyModel model{.vocabulary = 20};
  ASSERT_LT(model.vocabulary, model.width);
  auto session = load_bytes(model.build(), {.sampling = true});
  ASSERT_TRUE(session.ok()) << session.status().message();
  for (const uint32_t depth : {1U, 2U, 3U}) {
    SCOPED_TRACE(depth);
    auto opened = Steps::open(*session, depth);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Steps& steps = **opened;
    steps.set({.temperature = 5, .seed = 3});
    int64_t position = 0;
    const std::vector<TokenId> prompt = {1};
    ASSERT_TRUE(blocking::start(steps, prompt, position++).ok());
    const auto outside = [&](TokenId id) { return id >= static_cast<TokenId>(model.vocabulary); };
    TokenId token = 0;
    int drawn = 0;
    for (; !outside(token) && drawn < 60; ++drawn) {
      while (steps.under_way() < depth && (drawn > 0 || depth > 1)) {
        ASSERT_TRUE(blocking::start_next(steps, position++).ok());
      }
      const auto next = blocking::take(steps);
      ASSERT_TRUE(next.ok()) << next.status().message();
      token = *next;
    }
    ASSERT_TRUE(outside(token)) << "never drawn";
    ASSERT_GT(drawn, 1) << "no step was given a token on the GPU before";
    if (steps.under_way() == 0) {
      ASSERT_TRUE(blocking::start_next(steps, position).ok());
    }
    const auto failed = blocking::take(steps);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.status().code(), Code::kInvalidArgument);
    EXPECT_NE(failed.status().message().find(
                  fmt::format("input 0 of 'forward': element 0 is {}, outside [0, 20), dim 0 of "
                              "weight",
                              token)),
              std::string::npos)
        << failed.status().message();
    EXPECT_NE(failed.status().message().find("state such as caches was changed"),
              std::string::npos);
    steps.discard();
    // What follows is not affected.
    ASSERT_TRUE(blocking::start(steps, prompt, 0).ok());
    EXPECT_TRUE(blocking::take(steps).ok());
  }
}

}  // namespace
}  // namespace pteryx::testing

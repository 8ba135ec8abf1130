// Signals between keys: none is lost. SPDX-License-Identifier: BSD-3-Clause
#include "terminal_input.h"

#include <csignal>

#include <gtest/gtest.h>

namespace pteryx::cli {
namespace {

volatile std::sig_atomic_t caught = 0;

// With a handler for SIGINT that counts.
struct SignalsBetweenKeys : testing::Test {
  SignalsBetweenKeys() {
    caught = 0;
    struct sigaction action = {};
    action.sa_handler = [](int /*signal*/) { caught = caught + 1; };
    ::sigaction(SIGINT, &action, &before);
  }
  ~SignalsBetweenKeys() override { ::sigaction(SIGINT, &before, nullptr); }

  struct sigaction before = {};
  TerminalInput input;
};

TEST_F(SignalsBetweenKeys, OneThatIsTakenStaysWithItsTaker) {
  {
    const SignalEvents events;
    ASSERT_EQ(std::raise(SIGINT), 0);
    const TerminalInput::Event event = input.next();
    EXPECT_EQ(event.kind, TerminalInput::Event::Kind::kSignal);
    EXPECT_EQ(event.signal, SIGINT);
  }
  EXPECT_EQ(caught, 0);
}

TEST_F(SignalsBetweenKeys, OneThatNobodyTookGoesToTheHandlerBefore) {
  {
    const SignalEvents events;
    ASSERT_EQ(std::raise(SIGINT), 0);
    EXPECT_EQ(caught, 0);
  }
  EXPECT_EQ(caught, 1);
}

}  // namespace
}  // namespace pteryx::cli

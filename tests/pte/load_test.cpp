// What is wrong with a program is found when it is loaded, also behind the position of a language
// model, and `inspect` finds the same.
// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "programs.h"

#include "pteryx/session/inspect.h"

namespace pteryx::testing {
namespace {

struct Row {
  const char* what;
  TinyModel model;
  const char* text;
};

const Row kModels[] = {
    {"an odd head size",
     {.width = 48, .heads = 16, .kv_heads = 8},
     "xq (delegate 0 value 25) width: expected an even number, got 3"},
    {"heads of q that those of k do not divide",
     {.kv_heads = 3},
     "k_cache (delegate 0 value 45) heads: expected a divisor of 4, got 3"},
    {"a group that does not divide the columns, in layer 2",
     {.layers = 2, .last_group = 24},
     "group_size 24 does not divide the 32 columns of x"},
};

TEST(Load, FindsWhatIsWrongBehindAPosition) {
  for (const Row& row : kModels) {
    SCOPED_TRACE(row.what);
    const SavedFile file(row.model.build());
    const auto session = Session::load(file.path(), {.device = device()});
    EXPECT_FALSE(session.ok()) << "was accepted";
    if (session.ok()) continue;
    EXPECT_EQ(session.status().code(), Code::kInvalidProgram);
    EXPECT_NE(session.status().message().find(row.text), std::string_view::npos)
        << session.status().message();
    const auto report = inspect(file.path(), {});
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_NE(report->methods[0].problem.find(row.text), std::string::npos)
        << report->methods[0].problem;
  }
}

}  // namespace
}  // namespace pteryx::testing

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/testing/refusal.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert::testing {

void expect_refused(const std::string& source, const ConvertOptions& options, Code code,
                    std::string_view text) {
  const TempFolder folder;
  const auto r = convert(source, folder / "out.pte", options);
  ASSERT_FALSE(r.ok()) << text;
  EXPECT_EQ(r.status().code(), code) << r.status().message();
  EXPECT_NE(r.status().message().find(text), std::string_view::npos)
      << "expected: " << text << "\ngot: " << r.status().message();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a file was left behind";
}

void expect_converted(const std::string& source, const ConvertOptions& options) {
  const TempFolder folder;
  const auto r = convert(source, folder / "out.pte", options);
  EXPECT_TRUE(r.ok()) << r.status().message();
}

}  // namespace pteryx::convert::testing

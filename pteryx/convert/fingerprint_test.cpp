// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/fingerprint.h"

#include <set>

#include <gtest/gtest.h>

#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert {
namespace {

using testing::TempFolder;

std::string of_file(const std::string& content) {
  const TempFolder folder;
  testing::write_file(folder / "x", content);
  Fingerprint f;
  const Status s = f.add_file(folder / "x");
  EXPECT_TRUE(s.ok()) << s.message();
  return f.text();
}

TEST(Fingerprint, TellsContentsApart) {
  const std::string large(10 << 20, 'x');  // larger than what is read whole
  std::set<std::string> seen = {of_file(large), of_file(large + 'x'), of_file(""), of_file("x"),
                                of_file(std::string(1, '\0'))};
  for (const size_t at : {size_t{0}, size_t{8 << 20} - 1, large.size() - 1}) {
    std::string other = large;
    other[at] = 'y';
    seen.insert(of_file(other));
  }
  EXPECT_EQ(seen.size(), 8U);
  EXPECT_EQ(of_file(large), of_file(large));
}

TEST(Fingerprint, OrderAndBordersCount) {
  const auto of = [](std::initializer_list<std::string_view> texts) {
    Fingerprint f;
    for (const std::string_view text : texts) f.add(text);
    return f.text();
  };
  EXPECT_EQ(of({"a", "b"}), of({"a", "b"}));
  EXPECT_NE(of({"a", "b"}), of({"b", "a"}));
  EXPECT_NE(of({"ab"}), of({"a", "b"}));
  EXPECT_EQ(of({}).size(), 32U);
}

TEST(Fingerprint, AFileThatIsNotThere) {
  Fingerprint f;
  EXPECT_EQ(f.add_file("/nonexistent/x").code(), Code::kIo);
}

}  // namespace
}  // namespace pteryx::convert

// A call as text. SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pteryx/ops/testing/op_harness.h"

namespace pteryx::ops::testing {

std::string describe(const Case& c) {
  const auto tensor = [](const TestTensor& t) {
    return fmt::format("{}{}", name(t.dtype), to_string(t.dims));
  };
  struct Text {
    const decltype(tensor)& shape;
    std::string operator()(Case::None) const { return "None"; }
    std::string operator()(const TestTensor& t) const { return shape(t); }
    std::string operator()(const Case::Constant& c) const { return "constant " + shape(c.tensor); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(const std::string& v) const { return fmt::format("'{}'", v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ", "));
    }
    std::string operator()(const std::vector<double>& v) const {
      return fmt::format("[{}]", fmt::join(v, ", "));
    }
    std::string operator()(const std::vector<TestTensor>& v) const {
      std::string text;
      for (const TestTensor& t : v) text += (text.empty() ? "" : ", ") + shape(t);
      return "[" + text + "]";
    }
    std::string operator()(const std::vector<std::optional<TestTensor>>& v) const {
      std::string text;
      for (const auto& t : v) text += (text.empty() ? "" : ", ") + (t ? shape(*t) : "None");
      return "[" + text + "]";
    }
    std::string operator()(Case::LiveInt v) const { return fmt::format("live {}", v.value); }
    std::string operator()(const Case::LiveInts& v) const {
      return fmt::format("live [{}]", fmt::join(v.values, ", "));
    }
  };
  std::string text = c.op_ + "(";
  for (size_t i = 0; i < c.args_.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::visit(Text{tensor}, c.args_[i]);
  text += ") ->";
  for (const TestTensor& t : c.outs_) text += " " + tensor(t);
  return text;
}

}  // namespace pteryx::ops::testing

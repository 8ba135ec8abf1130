// Functions by name, with their parameters. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/status.h"
#include "pteryx/llm/chat/evaluator.h"
#include "pteryx/llm/chat/value.h"

namespace pteryx::llm::chat {

// What a built-in function is called with: a value for every parameter, none() where it was left
// out.
struct Call {
  Evaluator& ev;
  const Value& self;
  std::vector<Value> args;

  Meter& meter() const { return ev.meter(); }
  bool given(size_t i) const { return !args[i].is_none() && !args[i].is_undefined(); }
  const std::string* text(size_t i) const { return args[i].string(); }
};

struct Builtin {
  std::string_view name;
  std::vector<std::string_view> parameters;
  Result<Value> (*run)(const Call& call);
};

// Puts arguments in the order of the parameters. Errors: kInvalidArgument.
inline Result<std::vector<Value>> bind(const Builtin& b, const Args& args) {
  if (args.positional.size() > b.parameters.size()) {
    return template_error(fmt::format("'{}': expected at most {} arguments, got {}", b.name,
                                      b.parameters.size(), args.positional.size()));
  }
  std::vector<Value> bound = args.positional;
  bound.resize(b.parameters.size());
  for (const auto& [name, value] : args.named) {
    const auto it = std::find(b.parameters.begin(), b.parameters.end(), name);
    if (it == b.parameters.end()) {
      return template_error(fmt::format("'{}': there is no argument '{}'", b.name, name));
    }
    bound[static_cast<size_t>(it - b.parameters.begin())] = value;
  }
  return bound;
}

inline const Builtin* find_builtin(std::span<const Builtin> all, std::string_view name) {
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const Builtin& b) { return b.name == name; });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace pteryx::llm::chat

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/kernel/expand.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "pteryx/ops/kernel/expression.h"
#include "pteryx/ops/kernel/lines.h"

namespace pteryx::ops {
namespace {

constexpr size_t kMostBytes = 4U << 20;
constexpr int64_t kMostTurns = 4096;  // of one #for
constexpr int kDeepest = 16;          // files in files

// A file being expanded: its lines, and what names stand for in it.
struct Scope {
  std::string_view name;
  std::vector<std::string_view> lines;
  const Scope* outer = nullptr;
  Options given;                                               // by whoever asks for it
  std::map<std::string, NamedValue, std::less<>> values = {};  // options, #let, #for
  std::deque<OptionDeclaration> options = {};                  // that values point at

  std::optional<NamedValue> find(std::string_view what) const {
    for (const Scope* s = this; s != nullptr; s = s->outer) {
      if (const auto it = s->values.find(what); it != s->values.end()) return it->second;
    }
    return std::nullopt;
  }
  // The option of this file that may be that word; null where there is none.
  const OptionDeclaration* with_word(const std::string& word) const {
    const auto it = std::ranges::find_if(options, [&](const OptionDeclaration& o) {
      return o.kind == OptionDeclaration::Kind::kChoice && o.takes(word);
    });
    return it == options.end() ? nullptr : &*it;
  }
};

class Expander {
 public:
  explicit Expander(const KernelFiles& files) : files_(files) {}

  Status add_file(std::string_view name, const Options& given, const Scope* outer) {
    const auto text = files_(name);
    if (!text) return invalid_argument(fmt::format("there is no kernel file '{}'", name));
    if (depth_ == kDeepest)
      return invalid_argument(fmt::format("{}: more than {} files in files", name, kDeepest));
    Scope scope{.name = name, .lines = split_lines(*text), .outer = outer, .given = given};
    ++depth_;
    size_t at = 0;
    PTERYX_TRY(add_lines(scope, at, true));
    --depth_;
    if (at < scope.lines.size())
      return fail(scope, at, fmt::format("'{}' where nothing is open", trimmed(scope.lines[at])));
    return check_given(scope);
  }

  Kernel take() { return std::move(kernel_); }

 private:
  static Status fail(const Scope& s, size_t line, std::string_view what) {
    return invalid_argument(fmt::format("{}:{}: {}", s.name, line + 1, what));
  }
  static Status fail(const Scope& s, size_t line, const Status& why) {
    return fail(s, line, why.message());
  }

  static Result<OptionValue> value_of(const Scope& s, size_t line, std::string_view text) {
    auto v = evaluate(text, [&](std::string_view name) { return s.find(name); });
    if (!v.ok()) return fail(s, line, v.status());
    return v;
  }
  static Result<int64_t> number_of(const Scope& s, size_t line, std::string_view text) {
    PTERYX_ASSIGN(const OptionValue v, value_of(s, line, text));
    if (const auto* n = std::get_if<int64_t>(&v)) return *n;
    return fail(s, line, fmt::format("'{}' is no number", text));
  }

  // What is given is an option, perhaps of a branch that was not taken.
  static Status check_given(const Scope& s) {
    for (const auto& [option, value] : s.given.all()) {
      const bool known = std::ranges::any_of(s.lines, [&](std::string_view line) {
        const auto o = parse_declaration(directive(line));
        return o.ok() && *o && (*o)->name == option;
      });
      if (!known) return fail(s, 0, fmt::format("it has no option '{}'", option));
    }
    return {};
  }

  // As far as a line that ends what is around, or the end of the file. Of what is not active
  // nothing is looked at but where it ends.
  Status add_lines(Scope& s, size_t& at, bool active) {
    while (at < s.lines.size()) {
      const Directive d = directive(s.lines[at]);
      if (d.name == "end" || d.name == "else" || d.name == "elif") return {};
      if (d.name == "if") {
        PTERYX_TRY(add_if(s, at, active));
      } else if (d.name == "for") {
        PTERYX_TRY(add_for(s, at, active));
      } else {
        if (active) PTERYX_TRY(add_line(s, at, d));
        ++at;
      }
    }
    return {};
  }

  Status add_if(Scope& s, size_t& at, bool active) {
    const size_t begin = at;
    bool taken = !active;  // one of the branches was
    bool last = false;
    for (Directive d = directive(s.lines[at]);; d = directive(s.lines[at])) {
      bool holds = !taken;
      if (!taken && d.name != "else") {
        PTERYX_ASSIGN(const int64_t n, number_of(s, at, d.rest));
        holds = n != 0;
      }
      if (last) return fail(s, at, fmt::format("'#{}' behind #else", d.name));
      last = d.name == "else";
      taken = taken || holds;
      ++at;
      PTERYX_TRY(add_lines(s, at, active && holds));
      if (at == s.lines.size()) return fail(s, begin, "#if without #end");
      if (directive(s.lines[at]).name == "end") break;
    }
    ++at;
    return {};
  }

  Status add_for(Scope& s, size_t& at, bool active) {
    const size_t begin = at;
    std::string_view rest = directive(s.lines[at]).rest;
    const std::string name(take_word(rest));
    const bool in = take_word(rest) == "in";
    const size_t dots = rest.find("..");
    if (!is_name(name) || !in || dots == std::string_view::npos)
      return fail(s, at, "expected '#for NAME in FIRST..END'");
    int64_t first = 0;
    int64_t end = 0;
    if (active) {
      PTERYX_ASSIGN(first, number_of(s, at, rest.substr(0, dots)));
      PTERYX_ASSIGN(end, number_of(s, at, rest.substr(dots + 2)));
      if (end - first > kMostTurns)
        return fail(s, at, fmt::format("{} turns, expected at most {}", end - first, kMostTurns));
      if (s.find(name)) return fail(s, at, fmt::format("'{}' has a value already", name));
      PTERYX_TRY(check_new(s, at, name));
    }
    ++at;
    const size_t body = at;
    for (int64_t i = first; i < end; ++i) {
      s.values[name] = {.value = i};
      at = body;
      PTERYX_TRY(add_lines(s, at, true));
    }
    s.values.erase(name);
    if (first >= end) PTERYX_TRY(add_lines(s, at, false));
    if (at == s.lines.size()) return fail(s, begin, "#for without #end");
    if (directive(s.lines[at]).name != "end")
      return fail(s, at, fmt::format("'{}' in a #for", trimmed(s.lines[at])));
    ++at;
    return {};
  }

  Status add_line(Scope& s, size_t at, const Directive& d) {
    if (d.name.empty()) return add_text(s, at);
    if (d.name == "option") return add_option(s, at, d);
    if (d.name == "tensor") return add_tensor(s, at, d);
    if (d.name == "require") return require(s, at, d.rest);
    if (d.name == "enable") return enable(s, at, d.rest);
    if (d.name == "include") return include(s, at, d.rest);
    if (d.name == "let") return let(s, at, d.rest);
    return fail(s, at, fmt::format("there is no directive '#{}'", d.name));
  }

  Status add_text(const Scope& s, size_t at) {
    PTERYX_ASSIGN(const std::string line, substituted(s, at, s.lines[at]));
    kernel_.code += line;
    kernel_.code += '\n';
    if (kernel_.code.size() > kMostBytes)
      return fail(s, at, fmt::format("more than {} bytes", kMostBytes));
    return {};
  }

  static Result<std::string> substituted(const Scope& s, size_t at, std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      const size_t dollar = std::min(text.find('$', i), text.size());
      out += text.substr(i, dollar - i);
      i = dollar;
      if (i == text.size()) break;
      ++i;
      if (i < text.size() && text[i] == '(') {
        const size_t close = closing_parenthesis(text, i);
        if (close == std::string_view::npos) return fail(s, at, "'$(' without ')'");
        PTERYX_ASSIGN(const OptionValue v, value_of(s, at, text.substr(i + 1, close - i - 1)));
        out += to_text(v);
        i = close + 1;
        continue;
      }
      size_t end = i;
      while (end < text.size() && is_name_part(text[end])) ++end;
      const std::string_view name = text.substr(i, end - i);
      const auto v = s.find(name);
      if (!v) return fail(s, at, fmt::format("'${}' has no value", name));
      out += to_text(v->value);
      i = end;
    }
    return out;
  }

  // A new name of this scope. A comparison with a word would take the name's value instead.
  static Status check_new(const Scope& s, size_t at, const std::string& name) {
    if (s.values.contains(name)) return fail(s, at, fmt::format("'{}' has a value already", name));
    if (const OptionDeclaration* o = s.with_word(name))
      return fail(s, at, fmt::format("'{}' is a word of option {}", name, o->name));
    return {};
  }
  static Status check_words(const Scope& s, size_t at, const OptionDeclaration& o) {
    for (const OptionValue& choice : o.choices) {
      const auto* word = std::get_if<std::string>(&choice);
      if (word != nullptr && (*word == o.name || s.find(*word)))
        return fail(s, at, fmt::format("option {}: '{}' is a name already", o.name, *word));
    }
    return {};
  }

  static Status add_option(Scope& s, size_t at, const Directive& d) {
    auto parsed = parse_declaration(d);
    if (!parsed.ok()) return fail(s, at, parsed.status());
    if (!*parsed) return {};
    PTERYX_TRY(check_new(s, at, (*parsed)->name));
    const OptionDeclaration& o = s.options.emplace_back(**std::move(parsed));
    PTERYX_TRY(check_words(s, at, o));
    std::optional<OptionValue> value;
    if (const OptionValue* given = s.given.find(o.name)) value = *given;
    if (const auto outer = s.find(o.name); !value && outer) value = outer->value;
    if (!value) return fail(s, at, fmt::format("option {} is not given", o.name));
    if (!o.takes(*value)) {
      return fail(
          s, at,
          fmt::format("option {}: expected {}, got {}", o.name, o.describe(), to_text(*value)));
    }
    s.values[o.name] = {.value = *std::move(value), .option = &o};
    return {};
  }

  Status add_tensor(Scope& s, size_t at, const Directive& d) {
    PTERYX_TRY(add_option(s, at, d));
    std::string_view rest = d.rest;
    KernelTensor t;
    t.name = take_word(rest);
    const std::string access(take_word(rest));
    t.access = *access_of(access);
    kernel_.tensors.push_back(t);
    const auto binding = static_cast<int64_t>(kernel_.tensors.size());
    if (access_is_raw(t.access)) {
      PTERYX_ASSIGN(const std::string type, substituted(s, at, rest));
      kernel_.code += fmt::format("@group(0) @binding({}) var<storage, {}> {}: array<{}>;\n",
                                  binding, t.is_written() ? "read_write" : "read", t.name, type);
      return {};
    }
    return add_file("common/tensor.wgsl",
                    {{"name", t.name},
                     {"binding", binding},
                     {"access", access},
                     {"type", s.find(t.name + std::string(kTypeSuffix))->value}},
                    nullptr);
  }

  static Status require(const Scope& s, size_t at, std::string_view rest) {
    PTERYX_ASSIGN(const int64_t holds, number_of(s, at, rest));
    if (holds != 0) return {};
    return fail(s, at, fmt::format("with {} it is not so that {}", s.given.describe(), rest));
  }

  Status enable(const Scope& s, size_t at, std::string_view rest) {
    if (rest == "f16") {
      kernel_.f16 = true;
    } else if (rest == "subgroups") {
      kernel_.subgroups = true;
    } else if (rest == "subgroup_matrix") {
      kernel_.subgroup_matrix = true;
    } else {
      return fail(s, at, fmt::format("'{}': expected f16, subgroups or subgroup_matrix", rest));
    }
    return {};
  }

  Status include(const Scope& s, size_t at, std::string_view rest) {
    PTERYX_ASSIGN(const std::string line, substituted(s, at, rest));
    rest = line;
    const size_t close = rest.find('"', 1);
    if (!rest.starts_with('"') || close == std::string_view::npos)
      return fail(s, at, "expected #include \"FILE\"");
    const std::string name(rest.substr(1, close - 1));
    rest = trimmed(rest.substr(close + 1));
    Options given;
    while (!rest.empty()) {
      const std::string_view word = take_word(rest);
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos)
        return fail(s, at, fmt::format("'{}': expected NAME=VALUE", word));
      const std::string_view value = word.substr(equals + 1);
      const auto n = parse_int(value);
      given.set(std::string(word.substr(0, equals)),
                n ? OptionValue(*n) : OptionValue(std::string(value)));
    }
    if (given.all().empty() && !included_.insert(name).second) return {};
    if (!files_(name)) return fail(s, at, fmt::format("there is no file '{}'", name));
    return add_file(*included_.insert(name).first, given, &s);
  }

  static Status let(Scope& s, size_t at, std::string_view rest) {
    const size_t equals = rest.find('=');
    const std::string name(trimmed(rest.substr(0, equals)));
    if (equals == std::string_view::npos || !is_name(name))
      return fail(s, at, "expected '#let NAME = EXPRESSION'");
    PTERYX_TRY(check_new(s, at, name));
    PTERYX_ASSIGN(OptionValue v, value_of(s, at, rest.substr(equals + 1)));
    s.values[name] = {.value = std::move(v)};
    return {};
  }

  const KernelFiles& files_;
  std::set<std::string, std::less<>> included_;
  Kernel kernel_;
  int depth_ = 0;
};

}  // namespace

Result<Kernel> expand_kernel(std::string_view file, const Options& options,
                             const KernelFiles& files) {
  Expander e(files);
  PTERYX_TRY(e.add_file(file, options, nullptr));
  return e.take();
}

}  // namespace pteryx::ops

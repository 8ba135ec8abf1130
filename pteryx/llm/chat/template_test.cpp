// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/chat/template.h"

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "pteryx/base/status.h"

namespace pteryx::llm::chat {
namespace {

Result<std::string> render(std::string_view source, const RenderOptions& options = {}) {
  auto parsed = Template::parse(source);
  if (!parsed.ok()) return std::move(parsed).status();
  return parsed->render({}, options);
}

void expect_refused(std::string_view source, Code code, std::string_view message,
                    const RenderOptions& options = {}) {
  auto text = render(source, options);
  ASSERT_FALSE(text.ok()) << source;
  EXPECT_EQ(name(text.status().code()), name(code)) << source;
  EXPECT_EQ(text.status().message(), message);
}

TEST(Template, NamesTheLineOfAnError) {
  expect_refused("a\nb\n{{ missing.x }}", Code::kInvalidArgument,
                 "template line 3: 'missing' is undefined");
  expect_refused("a\n{% if true %}\n\n{{ 1 / 0 }}{% endif %}", Code::kInvalidArgument,
                 "template line 4: division by zero");
  expect_refused("\n\n{{ 1 + }}", Code::kInvalidProgram,
                 "template line 3: expected a value, got '}}'");
  expect_refused("{% macro m() %}\n{{ raise_exception('no') }}{% endmacro %}\n{{ m() }}",
                 Code::kInvalidArgument, "template line 2: no");
}

TEST(Template, NamesWhatItDoesNotKnow) {
  expect_refused("{% include 'x' %}", Code::kUnsupported,
                 "template line 1: tag 'include' is not supported");
  expect_refused("a\n{% endif %}", Code::kInvalidProgram,
                 "template line 2: 'endif' has no beginning");
  expect_refused("{% if a %}{% else %}{% else %}{% endif %}", Code::kInvalidProgram,
                 "template line 1: 'else' has no beginning");
  expect_refused("\n{{ 1 | pprint }}", Code::kUnsupported,
                 "template line 2: filter 'pprint' is not supported");
  expect_refused("{{ 1 is escaped }}", Code::kUnsupported,
                 "template line 1: test 'escaped' is not supported");
  expect_refused("{% for x in y recursive %}{% endfor %}", Code::kUnsupported,
                 "template line 1: recursive loops are not supported");
  expect_refused("{{ f(*x) }}", Code::kUnsupported,
                 "template line 1: unpacked arguments are not supported");
  expect_refused("{{ 'x' | trim(1, 2) }}", Code::kInvalidArgument,
                 "template line 1: 'trim': expected at most 1 arguments, got 2");
  expect_refused("{{ 'x' | join(e='y') }}", Code::kInvalidArgument,
                 "template line 1: 'join': there is no argument 'e'");
}

TEST(Template, StopsWhereALimitIs) {
  const RenderOptions small = {.most_work = 100'000, .most_bytes = 20'000};
  const std::string_view loop =
      "{% for a in range(99) %}{% for b in range(99) %}{% endfor %}{% endfor %}";
  expect_refused(loop, Code::kInvalidArgument,
                 "template line 1: the template takes more work than allowed (100000 units)",
                 small);
  expect_refused(
      "{% for a in range(101) %}" + std::string(999, 'x') + "{% endfor %}", Code::kInvalidArgument,
      "template line 1: the template takes more memory than allowed (20000 bytes)", small);
  expect_refused(
      "{% set ns = namespace(s='0123456789') %}{% for a in range(20) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}",
      Code::kInvalidArgument,
      "template line 1: the template takes more memory than allowed (20000 bytes)", small);
  expect_refused("{{ range(100001) }}", Code::kInvalidArgument,
                 "template line 1: range() of more than 100000 numbers");
  expect_refused("{{ 'x' * 99999999999 }}", Code::kInvalidArgument,
                 "template line 1: the template takes more memory than allowed (33554432 bytes)");
  expect_refused("{{ 9223372036854775807 + 1 }}", Code::kInvalidArgument,
                 "template line 1: a number is too large");
}

TEST(Template, RaisesMinusOneToAnyPower) {
  auto text = render("{{ (-1) ** 9223372036854775807 }} {{ 1 ** 9223372036854775807 }}");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "-1 1");
}

TEST(Template, BoundsNesting) {
  expect_refused("{{ " + std::string(200, '(') + "1" + std::string(200, ')') + " }}",
                 Code::kInvalidProgram, "template line 1: an expression is nested too deep");
  std::string chain = "{{ 1";
  for (int i = 0; i < 200; ++i) chain += " + 1";
  expect_refused(chain + " }}", Code::kInvalidProgram,
                 "template line 1: an expression is nested too deep");
  std::string blocks;
  for (int i = 0; i < 100; ++i) blocks += "{% if 1 %}";
  expect_refused(blocks, Code::kInvalidProgram, "template line 1: blocks are nested too deep");
  expect_refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", Code::kInvalidArgument,
                 "template line 1: macros call each other too deep");
  expect_refused(
      "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}"
      "{% endfor %}",
      Code::kInvalidArgument, "template line 1: a value is nested more than 64 deep");
}

TEST(Template, HoldsNoCycles) {
  expect_refused("{% set ns = namespace() %}{% set ns.self = ns %}", Code::kInvalidArgument,
                 "template line 1: a namespace cannot be inside a namespace");
  expect_refused("{% set ns = namespace() %}{% set x = [ns] %}", Code::kInvalidArgument,
                 "template line 1: a namespace cannot be inside a list or dict");
}

TEST(Template, RefusesWhatIsNotText) {
  expect_refused("\xff", Code::kInvalidProgram, "template is not UTF-8");
  expect_refused(std::string((1 << 18) + 1, 'x'), Code::kInvalidProgram,
                 "template of 262145 bytes: expected at most 262144");
}

TEST(RenderChat, MessagesBringTheirNamesAndToolCalls) {
  const auto t = Template::parse(
      "{% for m in messages %}{{ m.role }}{% if m.name %}/{{ m.name }}{% endif %}"
      "{% for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments.city }}]"
      "{% endfor %}{% if m.tool_call_id %}#{{ m.tool_call_id }}{% endif %};{% endfor %}");
  ASSERT_TRUE(t.ok()) << t.status().message();
  const std::vector<Message> messages = {
      {.role = "user", .content = "Rain?", .name = "ada"},
      {.role = "assistant",
       .content = "",
       .tool_calls = R"([{"function": {"name": "weather", "arguments": {"city": "Oslo"}}}])"},
      {.role = "tool", .content = "yes", .tool_call_id = "7"}};
  const auto text = render_chat(*t, messages, {});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "user/ada;assistant[weather Oslo];tool#7;");
  EXPECT_EQ(render_chat(*t, {{.role = "assistant", .content = "", .tool_calls = "[{"}}, {})
                .status()
                .code(),
            Code::kInvalidArgument);
}

TEST(RenderChat, PassesTheConversation) {
  auto parsed = Template::parse(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
      "{{ tools[0].name if tools }}{{ '>' if add_generation_prompt }}{{ eos_token }}");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const std::vector<Message> messages = {{"user", "hi \xff"}, {"assistant", "ho"}};
  auto text = render_chat(*parsed, messages, {.bos_token = "<s>", .eos_token = "</s>"});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "<s>[user:hi \xEF\xBF\xBD][assistant:ho]></s>");
  text = render_chat(*parsed, messages,
                     {.add_generation_prompt = false, .tools_json = R"([{"name": "f"}])"});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "[user:hi \xEF\xBF\xBD][assistant:ho]f");
  text = render_chat(*parsed, messages, {.tools_json = "[1,"});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().message(), "expected JSON that is nested at most 48 deep");
}

TEST(Json, KeepsTheOrderOfADocument) {
  const std::string_view document =
      R"({"b": [1, -2, 2.5, true, null], "a": {"z": "\u00e9\n", "y": {}}, "big": 1e+20})";
  auto value = value_of_json(document);
  ASSERT_TRUE(value.ok()) << value.status().message();
  auto text = Template::parse("{{ document | tojson }}")->render({{"document", *value}});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(
      *text,
      "{\"b\": [1, -2, 2.5, true, null], \"a\": {\"z\": \"é\\n\", \"y\": {}}, \"big\": 1e+20}");
}

}  // namespace
}  // namespace pteryx::llm::chat

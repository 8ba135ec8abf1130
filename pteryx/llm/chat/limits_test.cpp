// Templates that try to take all memory or all time: each is refused, with the line, before it does
// either.
// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/testing/render_alone.h"

namespace pteryx::llm::chat {
namespace {

using testing::kSanitized;
using testing::Outcome;
using testing::render_alone;

constexpr long kMostKib = kSanitized ? 1024L * 1024 : 64L * 1024;
constexpr double kLongestSeconds = kSanitized ? 10 : 1;
constexpr uint64_t kMostWork = RenderOptions().most_work / (kSanitized ? 10 : 1);

std::string repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string numbered(std::string_view before, std::string_view after, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out.append(before).append(std::to_string(i)).append(after);
  }
  return out;
}

// A loop whose body, on line 2, is run until a limit stops it.
std::string grow(std::string_view start, std::string_view body) {
  return "{% set ns = namespace(x=" + std::string(start) + ") %}\n{% for i in range(100000) %}" +
         std::string(body) + "{% endfor %}";
}
std::string grow_value(std::string_view start, std::string_view value) {
  return grow(start, "{% set ns.x = " + std::string(value) + " %}");
}
// An expression on line 2, over a long text `s`, its tail `t` that is not in it, and a list.
std::string print(std::string_view expression) {
  return "{% set s = 'a' * 1000000 %}{% set t = 'a' * 500000 ~ 'b' %}{% set l = [s] * 100000 %}\n"
         "{{ " +
         std::string(expression) + " }}";
}
std::string forever(std::string_view expression) {
  return "{% set s = 'a' * 1000000 %}{% set t = 'a' * 500000 ~ 'b' %}{% set l = [s] * 100000 %}"
         "\n{% for i in range(100000) %}{% for j in range(100000) %}{% if " +
         std::string(expression) + " %}{% endif %}{% endfor %}{% endfor %}";
}

// Whichever comes first.
constexpr std::string_view kEither = "template line 2: the template takes more ";
constexpr std::string_view kMemory =
    "template line 2: the template takes more memory than allowed (33554432 bytes)";
constexpr std::string_view kWork = "template line 2: the template takes more work than allowed (";

struct Case {
  std::string name;
  std::string source;
  std::string_view message;  // how it starts
};

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Outcome o = render_alone(c.source, kMostWork);
    const std::string shown = c.name + ": " + c.source.substr(0, 300);
    EXPECT_TRUE(o.ended) << "killed: " << shown;
    if (!o.ended) continue;
    EXPECT_FALSE(o.accepted) << shown;
    // With less work allowed, another limit may be met first.
    const std::string_view expected = kSanitized ? "template line " : c.message;
    EXPECT_TRUE(o.message.starts_with(expected)) << shown << "\n" << o.message;
    EXPECT_LE(o.message.size(), 250U) << shown;
    EXPECT_LT(o.peak_kib, kMostKib) << shown;
    EXPECT_LT(o.seconds, kLongestSeconds) << shown;
  }
}

TEST(TemplateLimits, TextIsCountedBeforeItIsMade) {
  expect_refused({
      {"replace", "\n{{ ('a' * 20000)|replace('a', 'b' * 20000)|length }}", kMemory},
      {"replace method", "\n{{ ('a' * 20000).replace('a', 'b' * 20000)|length }}", kMemory},
      {"replace all", print("s|replace('a', s)"), kMemory},
      {"join method", "\n{{ ''.join(['x' * 1000000] * 3000) }}", kMemory},
      {"join", print("l|join|length"), kMemory},
      {"join with", print("range(1000)|join(s)|length"), kMemory},
      {"join method with", print("s.join('a' * 1000)|length"), kMemory},
      {"string", "\n{{ (['x' * 1000000] * 3000)|string|length }}", kMemory},
      {"concatenate a list", "\n{{ ((['x' * 1000000] * 3000) ~ '')|length }}", kMemory},
      {"concatenate to a list", print("(s ~ l)|length"), kMemory},
      {"print a list", print("l"), kMemory},
      {"print a dict", print("{'a': l, 'b': l}"), kMemory},
      {"tojson", print("l|tojson|length"), kMemory},
      {"tojson of a dict", print("{s: l}|tojson|length"), kMemory},
      {"tojson sorted", print("{s: l}|tojson(sort_keys=true)|length"), kMemory},
      {"tojson escapes", print("(s|replace('a', '\\x01'))|tojson ~ l"), kMemory},
      {"tojson ascii", print("('\u00e9' * 8000000)|tojson(ensure_ascii=true)"), kMemory},
      {"tojson separators", print("range(100000)|tojson(separators=[s, s])"), kMemory},
      {"tojson indent", print("(['a'] * 100000)|map('list')|tojson(indent=16)"), kEither},
      {"repeat", "\n{{ ('a' * 16000000)|length }}{{ 'b' * 16000000 }}{{ 'c' * 16000000 }}",
       kMemory},
      {"repeat a repetition", "\n{{ ('a' * 16000000) * 16000000 }}", kMemory},
      {"number times text", "\n{{ 9000000000000000000 * 'ab' }}", kMemory},
      {"add", print("s * 16 + s * 16"), kMemory},
      {"indent", "\n{{ ('\\n' * 1000000)|indent(256, true, true) }}", kMemory},
      {"indent with text", print("('\\n' * 100000)|indent(s, true, true)"), kMemory},
      {"escape", print("(s|replace('a', '\"\"\"'))|e ~ (s * 9)|replace('a', '<')|escape"), kMemory},
      {"output", grow("'x' * 1000000", "{{ ns.x }}"), kMemory},
      {"output of text", grow("''", std::string(1000, 'x')), kMemory},
      {"doubling", grow_value("'x'", "ns.x ~ ns.x"), kMemory},
      {"adding", grow_value("'x'", "ns.x + ns.x"), kMemory},
      {"doubling by format", grow_value("['x', 'x']", "[ns.x|string, ns.x|string]"), kMemory},
      {"doubling by join", grow_value("'x'", "[ns.x, ns.x]|join"), kMemory},
      {"doubling by replace", grow_value("'x'", "ns.x|replace('x', 'xx')"), kMemory},
      {"doubling by tojson", grow_value("'\"'", "ns.x|tojson"), kMemory},
      {"doubling by escape", grow_value("'&'", "(ns.x|e).replace('amp;', '&')"), kMemory},
      {"set block", grow("'x'", "{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"), kMemory},
      {"macro", "{% macro m(x) %}\n{{ x }}{{ x }}{% endmacro %}" + grow_value("'x'", "m(ns.x)"),
       kMemory},
  });
}

TEST(TemplateLimits, ListsAreCountedBeforeTheyAreMade) {
  const std::string keep = "ns.x + [";
  expect_refused({
      {"repeat", "\n{{ ([0] * 16000000)|length }}", kMemory},
      {"repeat again", "\n{{ ([0] * 1000000) * 9000000000000000000 }}", kMemory},
      {"doubling", grow_value("[0]", "ns.x + ns.x"), kMemory},
      {"characters", "\n{{ ('a' * 8000000)|list|length }}", kMemory},
      {"characters of a loop", "\n{% for c in 'a' * 8000000 %}{% endfor %}", kMemory},
      {"characters of a map", "\n{{ ('a' * 8000000)|map('upper')|list|length }}", kMemory},
      {"characters sorted", "\n{{ ('a' * 8000000)|sort|length }}", kMemory},
      {"characters joined", "\n{{ ('a' * 8000000)|join('')|length }}", kMemory},
      {"characters unpacked", "\n{% set a, b = 'a' * 8000000 %}", kMemory},
      {"split", "\n{{ ('a,' * 4000000).split(',')|length }}", kMemory},
      {"split at spaces", "\n{{ ('a ' * 4000000).split()|length }}", kMemory},
      {"rsplit", "\n{{ ('a,' * 4000000).rsplit(',')|length }}", kMemory},
      {"splitlines", "\n{{ ('a\\n' * 4000000).splitlines()|length }}", kMemory},
      {"slices of text", grow_value("[]", keep + "('a' * 1000000)[1:]]"), kMemory},
      {"slices by step", grow_value("[]", keep + "('a' * 1000000)[::-2]]"), kEither},
      {"slices of lists", grow_value("[]", keep + "([0] * 100000)[1:]]"), kMemory},
      {"upper", grow_value("[]", keep + "('\u0250' * 100000)|upper]"), kEither},
      {"title", grow_value("[]", keep + "('ab ' * 100000).title()]"), kEither},
      {"title filter", grow_value("[]", keep + "('ab ' * 100000)|title]"), kEither},
      {"capitalize", grow_value("[]", keep + "('ab ' * 100000)|capitalize]"), kEither},
      {"trim", grow_value("[]", keep + "('ab ' * 100000)|trim]"), kMemory},
      {"strip", grow_value("[]", keep + "('ab ' * 100000).strip('a')]"), kMemory},
      {"reverse", grow_value("[]", keep + "('ab ' * 100000)|reverse]"), kEither},
      {"reversed list", grow_value("[]", keep + "range(100000)|reverse]"), kMemory},
      {"range", grow_value("[]", keep + "range(100000)]"), kMemory},
      {"map over text", print("l|map('upper')|list|length"), kEither},
      {"map to what is not there", print("range(100000)|map(attribute=s)|list|length"), kEither},
      {"map to methods", grow_value("[]", keep + "(['a'] * 50000)|map(attribute='upper')|list]"),
       kMemory},
      {"select", grow_value("[]", keep + "range(100000)|select('odd')|list]"), kEither},
      {"rejectattr", grow_value("[]", keep + "([{}] * 100000)|rejectattr('a')|list]"), kEither},
      {"unique", print("range(100000)|unique|list|length"), kWork},
      {"sort", grow_value("[]", keep + "range(100000)|sort]"), kEither},
      {"items", grow_value("[]", keep + "{'a': 1, 'b': 2}.items()]"), kEither},
      {"keys", grow_value("[]", keep + "{'a' * 1000000: 1}.keys()]"), kMemory},
      {"dict", grow_value("[]", keep + "dict({'a' * 1000000: 1}, b=2)]"), kMemory},
      {"dict literal", grow_value("[]", keep + "{'a' * 1000000: 1}]"), kMemory},
      {"loops kept", grow_value("[]", keep + "loop]"), kEither},
      {"undefined kept", grow_value("[]", keep + "{}['a' * 1000000]]"), kEither},
      {"undefined by list", print("{}[l].x"), "template line 2: 'list' is undefined"},
      {"arguments",
       "{% macro m(" + repeated("a,", 20000) + "a) %}\n{{ m(" + repeated("1,", 40000) +
           "1) }}{% endmacro %}{{ m() }}",
       "template line 2: macro 'm': expected at most 20001 arguments, got 40001"},
      {"arguments 16 deep",
       "{% macro m(" + repeated("a,", 40000) + "a) %}\n{{ m(" + repeated("1,", 40000) +
           "1) }}{% endmacro %}{{ m() }}",
       kMemory},
  });
}

TEST(TemplateLimits, WorkIsCountedByWhatItTakes) {
  expect_refused({
      {"loops", forever("1"), kEither},
      {"loops in loops",
       "\n" + repeated("{% for i in range(9999) %}", 9) + "x" + repeated("{% endfor %}", 9),
       kEither},
      {"empty loops",
       "\n{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", kEither},
      {"find", print("s.find(t)"), kWork},
      {"in", print("t in s"), kWork},
      {"is in", print("t is in(s)"), kWork},
      {"count", print("s.count(t)"), kWork},
      {"replace", print("s|replace(t, '')"), kWork},
      {"replace nothing", forever("s|replace('b', '')"), kWork},
      {"split", print("s.split(t)"), kWork},
      {"rsplit", print("s.rsplit('b' ~ s[:500000])"), kWork},
      {"strip", print("s.strip('b' * 1000000 ~ 'a')"), kWork},
      {"lstrip", print("s.lstrip('\u00e0' * 100000 ~ 'a')"), kWork},
      {"trim", print("s|trim('b' * 1000000 ~ 'a')"), kWork},
      {"trim spaces", forever("(' ' * 1000000)|trim"), kWork},
      {"startswith", forever("s.startswith(l)"), kWork},
      {"startswith all but the end", print("s.startswith([s ~ 'b', s[:-1] ~ 'c'] * 100000)"),
       kEither},
      {"endswith", print("s.endswith(['b' ~ s[1:]] * 100000)"), kWork},
      {"sort", print("l|sort|length"), kEither},
      {"sort of long texts", print("(['a' * 100000] * 10000)|sort|length"), kEither},
      {"max", print("l|max"), kEither},
      {"unique of long texts", print("([s ~ 'a', s ~ 'b'] * 10000)|unique"), kEither},
      {"index", print("([s ~ 'a'] * 100000).index(s ~ 'b')"), kWork},
      {"in a list", print("(s ~ 'b') in ([s ~ 'a'] * 100000)"), kWork},
      {"lists that are equal", print("([s ~ 'a'] * 100000) == ([s ~ 'a'] * 100000)"), kWork},
      {"texts that are equal", forever("s == s[:-1] ~ 'a'"), kWork},
      {"texts in order", forever("s < t"), kWork},
      {"select equal", print("([s ~ 'a'] * 100000)|select('eq', s ~ 'a')|list"), kWork},
      {"length", forever("s|length"), kWork},
      {"last", forever("s[500000]"), kWork},
      {"slice", forever("s[499999:500000]"), kWork},
      {"repeat", forever("'x' * 1000000"), kWork},
      {"upper", forever("s is upper"), kWork},
      {"isupper", forever("s.isupper()"), kWork},
      {"isalpha", forever("s.isalpha()"), kWork},
      {"tojson", forever("('\\x01' * 1000000)|tojson"), kWork},
      {"float", forever("('1' * 1000000)|float"), kWork},
      {"int", forever("(' ' * 1000000)|int"), kWork},
      {"sum", forever("range(100000)|sum"), kWork},
      {"length of lists", forever("(l + l)|length"), kWork},
      {"reverse of lists", forever("l|reverse"), kWork},
      {"dict", forever("dict({" + numbered("'k", "': 1, ", 2000) + "})"), kEither},
      {"a dict of many", "\n{{ {" + numbered("'", "':1,", 20000) + "}|length }}", kEither},
      {"look-ups in a dict",
       "{% set d = {" + numbered("'", "':1,", 4000) +
           "} %}{% for i in range(100000) %}"
           "{% for i in range(100000) %}\n{{ d.x }}{{ d['x'] }}{{ d.get('x') }}{{ 'x' in d }}"
           "{% endfor %}{% endfor %}",
       kWork},
      {"equal dicts",
       "{% set c = {" + numbered("'", "':1,", 4000) +
           "} %}{% set d = dict(c) %}"
           "{% for i in range(100000) %}\n{{ c == d }}{% endfor %}",
       kWork},
      {"names",
       "{% set a = 1 %}" + numbered("{% set a", " = 1 %}", 5000) +
           "{% for i in range(100000) %}\n{{ a0 }}{{ none_such }}{% endfor %}",
       kWork},
      {"macros that call two",
       "\n{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{{ m(n - 1) }}{{ m(n - 1) }}"
       "{% endif %}{% endmacro %}{{ m(14) }}",
       kEither},
      {"map with many arguments",
       "\n{{ range(100000)|map('default', " + repeated("1,", 30000) + "1)|list }}",
       "template line 2: 'default': expected at most 2 arguments"},
      {"shared elements printed",
       "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
       "{% set ns.x = [ns.x, ns.x] %}{% endfor %}\n{{ ns.x }}",
       kEither},
      {"shared elements compared",
       "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}"
       "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}\n"
       "{{ ns.x == ns.y }}",
       kWork},
  });
}

TEST(TemplateLimits, NestingIsBounded) {
  expect_refused({
      {"methods of dicts of methods", grow_value("1", "{'a': ns.x}.get"),
       "template line 2: a value is nested more than 64 deep"},
      {"maps of maps", "\n{{ 'a'|map(" + repeated("'map',", 30000) + "'upper')|list }}",
       "template line 2: filters are nested more than"},
      {"maps of a long text", print("s|map('map', 'map', 'upper')|list"), kMemory},
  });
}

// What a message quotes of a template is short.
TEST(TemplateLimits, MessagesAreShort) {
  expect_refused({
      {"index", print("[1].index(s)"), "template line 2: the value is not in the list"},
      {"range", print("range(s)"),
       "template line 2: range(): expected one to three small integers, got str"},
      {"undefined", print("{}[s].x"), "template line 2: 'aaa"},
      {"raise", print("raise_exception(s)"), "template line 2: aaa"},
      {"name", "\n{{ " + std::string(100000, 'n') + ".x }}", "template line 2: 'nnn"},
      {"filter", "\n{{ 1|" + std::string(100000, 'n') + " }}", "template line 2: filter 'nnn"},
      {"token", "\n{{ 1 + * '" + std::string(100000, 'n') + "' }}", "template line 2: "},
      {"string", "\n{{ 1 '" + std::string(100000, 'n') + "' }}", "template line 2: expected"},
      {"tag", "\n{% " + std::string(100000, 'n') + " %}", "template line 2: tag 'nnn"},
  });
}

// The largest source, of the parts that take the most to hold.
TEST(TemplateLimits, SourcesTakeLittleToHold) {
  for (const std::string_view part :
       {"{{1}}", "{%if 1%}{%endif%}", "{{[1,1,1,1,1,1,1,1]}}", "{{a}}"}) {
    const Outcome o = render_alone(repeated(part, (256 << 10) / part.size()), kMostWork);
    EXPECT_TRUE(o.accepted) << part << o.message;
    EXPECT_LT(o.peak_kib, kMostKib) << part;
    EXPECT_LT(o.seconds, kLongestSeconds) << part;
  }
}

// What real templates do, over a long conversation.
TEST(TemplateLimits, LongConversationsAreRendered) {
  const auto parsed = Template::parse(
      "{% set ns = namespace(system='', all='') %}"
      "{% for m in messages if m.role == 'system' %}{% set ns.system = m.content %}{% endfor %}"
      "{% for m in messages[1:] %}"
      "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('no') }}{% endif %}"
      "{% set content = m.content %}"
      "{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}"
      "{% if loop.index0 < 200 %}{% set ns.all = ns.all ~ content|trim ~ '\\n' %}{% endif %}"
      "<|{{ m['role'] | upper }}|>{{ content.strip() | replace('x', 'xy') }}"
      "{% if loop.index0 == messages|length - 2 %}last{% endif %}"
      "{% if messages[loop.index0].role == 'user' and messages[-1].content %}{{ m.content|tojson }}"
      "{% endif %}{% endfor %}{{ ns.all }}{{ messages[::-1][0].content }}");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  for (const auto& [count, size] : {std::pair{1000, 1000}, {10'000, 100}, {3, 400'000}}) {
    std::vector<Message> messages = {{"system", "Be terse."}};
    for (int i = 0; i < count; ++i) {
      messages.push_back({i % 2 == 0 ? "user" : "assistant",
                          "<think>no</think> " + std::string(static_cast<size_t>(size), 'x')});
    }
    const double start = testing::processor_seconds();
    const auto text = render_chat(*parsed, messages, {});
    const double took = testing::processor_seconds() - start;
    ASSERT_TRUE(text.ok()) << count << ": " << text.status().message();
    EXPECT_GT(text->size(), static_cast<size_t>(count) * static_cast<size_t>(size) * 2);
    EXPECT_LT(took, kLongestSeconds) << count;
  }
}

}  // namespace
}  // namespace pteryx::llm::chat

// libFuzzer target: chat templates, read and rendered. SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "input.h"

#include "pteryx/llm/chat/template.h"

namespace {

using pteryx::Code;

bool is_refusal(const pteryx::Status& s) {
  const bool known = s.code() == Code::kInvalidProgram || s.code() == Code::kUnsupported ||
                     s.code() == Code::kInvalidArgument;
  return known && !s.message().empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const pteryx::fuzz::Input input(data, size);
  const auto* const text = reinterpret_cast<const char*>(input.bytes().data());
  const auto parsed = pteryx::llm::chat::Template::parse({text, size});
  if (!parsed.ok()) {
    if (!is_refusal(parsed.status())) std::abort();
    return 0;
  }
  const std::vector<pteryx::llm::Message> messages = {
      {"system", " Be terse. "}, {"user", "Hi <think> \xC3\xA9"}, {"assistant", "4"}, {"user", ""}};
  const auto rendered = pteryx::llm::chat::render_chat(
      *parsed, messages,
      {.bos_token = "<s>",
       .eos_token = "</s>",
       .tools_json = R"([{"function": {"name": "f", "parameters": {"a": [1, 2.5, null]}}}])",
       .render = {.most_work = 1'000'000, .most_bytes = 1 << 22}});
  if (!rendered.ok() && !is_refusal(rendered.status())) std::abort();
  return 0;
}

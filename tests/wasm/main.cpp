// What a page would call, so that a link shows all that the library needs of it: loading, running,
// generating, tokenizing and rendering a chat. It is linked, and never run.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/gpu/cpu_device.h"
#include "pteryx/gpu/device.h"
#include "pteryx/llm.h"
#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/pteryx.h"

#define PTERYX_EXPORT(name) extern "C" __attribute__((export_name(#name)))

namespace pteryx {
namespace {

std::vector<std::string> said;  // keeps what the calls below make

int tell(const Status& status) {
  if (!status.ok()) said.emplace_back(status.message());
  return status.ok() ? 0 : 1;
}

std::shared_ptr<gpu::Device> device = gpu::cpu_device();  // of a page without WebGPU

SourcePtr memory(const std::byte* bytes, size_t size) {
  return std::make_shared<MemorySource>("program", Bytes(bytes, size));
}

// What a page would call each time that something may have happened.
Result<bool> run(SessionLoad& load, const TensorView& input) {
  PTERYX_ASSIGN(const bool loaded, load.advance());
  if (!loaded) return false;
  Session session = load.take();
  const Value inputs[] = {input};
  PTERYX_ASSIGN(Run run, session.start("forward", inputs));
  PTERYX_ASSIGN(const bool done, run.advance());
  if (!done) return false;
  for (const Value& output : run.outputs())
    said.push_back(std::to_string(output.tensor()->size_bytes));
  PTERYX_TRY(session.reset());
  return true;
}

Result<bool> generate_text(llm::ModelLoad& load, std::span<const TokenId> ids) {
  PTERYX_ASSIGN(const bool loaded, load.advance());
  if (!loaded) return false;
  const std::unique_ptr<llm::Model> model = load.take();
  PTERYX_ASSIGN(const auto sequence, llm::Sequence::create(*model));
  llm::Generator generator(*sequence);
  PTERYX_TRY(generator.begin(ids, {}));
  PTERYX_ASSIGN(const bool there, generator.advance());
  if (there) said.push_back(generator.piece().text);
  return there;
}

Status tokenize(Bytes file, std::string_view text) {
  PTERYX_ASSIGN(const auto tokenizer, llm::read_tokenizer(file));
  PTERYX_ASSIGN(const auto ids, tokenizer->encode(text, {}));
  PTERYX_ASSIGN(std::string decoded, tokenizer->decode(ids, llm::Specials::kShow));
  said.push_back(std::move(decoded));
  return {};
}

Status render(std::string_view source, const std::string& content) {
  PTERYX_ASSIGN(const auto parsed, llm::chat::Template::parse(source));
  PTERYX_ASSIGN(std::string prompt, llm::chat::render_chat(parsed, {{"user", content}}, {}));
  said.push_back(std::move(prompt));
  return {};
}

}  // namespace
}  // namespace pteryx

PTERYX_EXPORT(run)
int export_run(const std::byte* program, size_t bytes, const float* data, size_t size) {
  using namespace pteryx;
  SessionLoad load(memory(program, bytes), {}, {.device = device});
  const Dims dims{static_cast<int64_t>(size)};
  return tell(run(load, tensor(dims, std::span(data, size))).status());
}

PTERYX_EXPORT(generate)
int export_generate(const std::byte* program, size_t bytes, const pteryx::TokenId* ids,
                    size_t size) {
  using namespace pteryx;
  llm::ModelLoad load(memory(program, bytes), {}, {.load = {.device = device}});
  return tell(generate_text(load, {ids, size}).status());
}

PTERYX_EXPORT(tokenize)
int export_tokenize(const std::byte* file, size_t size, const char* text, size_t length) {
  return pteryx::tell(pteryx::tokenize({file, size}, {text, length}));
}

PTERYX_EXPORT(render)
int export_render(const char* source, size_t size, const char* content) {
  return pteryx::tell(pteryx::render({source, size}, content));
}

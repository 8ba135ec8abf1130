// What a page would call, so that a link shows all that the library needs of it: loading, running,
// generating, tokenizing and rendering a chat. It is linked, and never run.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/generate/generator.h"
#include "pteryx/generate/model.h"
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

Status run(const std::string& path, const TensorView& input) {
  PTERYX_ASSIGN(Session session, Session::load(path));
  const Value inputs[] = {input};
  PTERYX_ASSIGN(const std::span<const Value> outputs, session.run("forward", inputs));
  for (const Value& output : outputs) said.push_back(std::to_string(output.tensor()->size_bytes));
  return session.reset();
}

Status generate_text(const std::string& path, std::span<const int64_t> ids) {
  PTERYX_ASSIGN(const auto model, generate::Model::load(path, {}));
  generate::Generator generator(*model);
  PTERYX_TRY(generator.begin(ids, {}));
  while (!generator.done()) {
    PTERYX_ASSIGN(generate::Piece piece, generator.step());
    said.push_back(std::move(piece.text));
  }
  return {};
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

PTERYX_EXPORT(run) int export_run(const char* path, const float* data, size_t size) {
  const pteryx::Dims dims{static_cast<int64_t>(size)};
  return pteryx::tell(pteryx::run(path, pteryx::tensor(dims, std::span(data, size))));
}

PTERYX_EXPORT(generate) int export_generate(const char* path, const int64_t* ids, size_t size) {
  return pteryx::tell(pteryx::generate_text(path, {ids, size}));
}

PTERYX_EXPORT(tokenize)
int export_tokenize(const std::byte* file, size_t size, const char* text, size_t length) {
  return pteryx::tell(pteryx::tokenize({file, size}, {text, length}));
}

PTERYX_EXPORT(render)
int export_render(const char* source, size_t size, const char* content) {
  return pteryx::tell(pteryx::render({source, size}, content));
}

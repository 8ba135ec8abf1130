// Tokenizers and chat templates for a script: calls leave what they made in `result`, and say
// whether it is a result or the message of an error.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/base/utf8.h"
#include "pteryx/llm/chat/template.h"
#include "pteryx/llm/tokenizer/regex.h"
#include "pteryx/llm/tokenizer/tokenizer.h"
#include "pteryx/llm/tokenizer/unicode.h"
#include "pteryx/llm/tokenizer/unicode_tables.h"

#define PTERYX_EXPORT(name) extern "C" __attribute__((export_name(#name)))

namespace pteryx::llm {
namespace {

std::string result;
TokenizerPtr tokenizer;
chat::Value document;  // variables of templates

template <typename Element>
void give(std::span<const Element> elements) {
  result.assign(reinterpret_cast<const char*>(elements.data()), elements.size_bytes());
}

template <typename Made>
int32_t tell(Result<Made> made) {
  if (made.ok()) {
    give(std::span<const typename Made::value_type>(*made));
  } else {
    result = made.status().message();
  }
  return made.ok() ? 1 : 0;
}

Result<std::string> stream(std::span<const TokenId> ids, Specials specials) {
  StreamDecoder decoder(*tokenizer, specials, TextStart::kNew);
  std::string text;
  for (const TokenId id : ids) {
    PTERYX_ASSIGN(const std::string piece, decoder.push(id));
    if (!is_utf8(piece)) return invalid_argument("a piece is not UTF-8");
    text += piece;
  }
  return text + decoder.finish();
}

Result<std::string> render(std::string_view source, const chat::Dict* variables,
                           const std::tm& now) {
  if (variables == nullptr) return invalid_argument("the document has no such variables");
  PTERYX_ASSIGN(const chat::Template parsed, chat::Template::parse(source));
  return parsed.render(*variables, {.now = now});
}

Result<std::vector<Span>> find_all(std::string_view pattern, std::string_view text) {
  PTERYX_ASSIGN(const Regex regex, Regex::compile(pattern));
  std::vector<Span> matches;
  PTERYX_TRY(regex.find_all(text, matches));
  return matches;
}

}  // namespace
}  // namespace pteryx::llm

using namespace pteryx::llm;  // NOLINT: all below is exports

PTERYX_EXPORT(allocate) void* export_allocate(size_t size) { return std::malloc(size); }
PTERYX_EXPORT(release) void export_release(void* memory) { std::free(memory); }
PTERYX_EXPORT(result_data) const char* export_result_data() { return result.data(); }
PTERYX_EXPORT(result_size) size_t export_result_size() { return result.size(); }

PTERYX_EXPORT(open) int32_t export_open(const std::byte* file, size_t size) {
  auto opened = read_tokenizer({file, size});
  if (opened.ok()) {
    tokenizer = std::move(opened).value();
  } else {
    result = opened.status().message();
  }
  return opened.ok() ? 1 : 0;
}

// The ids; with `usual`, as the file asks for them.
PTERYX_EXPORT(encode)
int32_t export_encode(const char* text, size_t size, int32_t parse_special, int32_t usual) {
  const EncodeOptions options = {.parse_special = parse_special != 0};
  return tell(
      tokenizer->encode({text, size}, usual != 0 ? tokenizer->vocabulary().usual : options));
}

PTERYX_EXPORT(decode)
int32_t export_decode(const pteryx::TokenId* ids, size_t size_bytes, int32_t show,
                      int32_t streamed) {
  const std::span<const pteryx::TokenId> list(ids, size_bytes / sizeof(pteryx::TokenId));
  const Specials specials = show != 0 ? Specials::kShow : Specials::kSkip;
  return tell(streamed != 0 ? stream(list, specials) : tokenizer->decode(list, specials));
}

PTERYX_EXPORT(read_document) int32_t export_read_document(const char* json, size_t size) {
  auto read = chat::value_of_json({json, size});
  if (read.ok()) document = std::move(read).value();
  return read.ok() ? 1 : 0;
}

// With the variables of a member of the document, or of an element of a list there.
PTERYX_EXPORT(render)
int32_t export_render(const char* source, size_t source_size, const char* member, size_t size,
                      int32_t element, int32_t year, int32_t month, int32_t day, int32_t hour,
                      int32_t minute, int32_t second) {
  std::tm now = {};
  now.tm_year = year - 1900;
  now.tm_mon = month - 1;
  now.tm_mday = day;
  now.tm_hour = hour;
  now.tm_min = minute;
  now.tm_sec = second;
  const chat::Value* variables = document.member({member, size});
  if (variables != nullptr && variables->list() != nullptr) {
    variables = &(*variables->list())[static_cast<size_t>(element)];
  }
  return tell(
      render({source, source_size}, variables == nullptr ? nullptr : variables->dict(), now));
}

// The matches, as pairs of byte offsets.
PTERYX_EXPORT(find_all)
int32_t export_find_all(const char* pattern, size_t pattern_size, const char* text, size_t size) {
  return tell(find_all({pattern, pattern_size}, {text, size}));
}

// A text in the form 0 to 3 of NormalForm.
PTERYX_EXPORT(normalize)
int32_t export_normalize(const char* text, size_t size, int32_t form) {
  return tell(normalize({text, size}, static_cast<NormalForm>(form)));
}

// For each of a range of characters: its kind, and its small, capital and title letters.
PTERYX_EXPORT(characters)
int32_t export_characters(uint32_t first, uint32_t count) {
  std::vector<uint32_t> table;
  for (uint32_t c = first; c < first + count; ++c) {
    table.insert(table.end(),
                 {static_cast<uint32_t>(kind_of(c)), to_lower(c), to_upper(c), to_title(c)});
  }
  give(std::span<const uint32_t>(table));
  return 1;
}

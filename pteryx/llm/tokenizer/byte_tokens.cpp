// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/tokenizer/byte_tokens.h"

#include <array>

#include "pteryx/base/utf8.h"

namespace pteryx::llm {
namespace {

std::optional<uint8_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  return std::nullopt;
}

constexpr char32_t kFirstMoved = 0x100;
constexpr size_t kCharacters = kFirstMoved + 68;

// Printable Latin-1 stands for itself; the other bytes, in order, for the characters from U+0100
// on.
constexpr bool is_printable(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<int16_t, kCharacters> make_bytes() {
  std::array<int16_t, kCharacters> bytes{};
  for (int16_t& b : bytes) b = -1;
  size_t moved = kFirstMoved;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    bytes[is_printable(byte) ? byte : moved++] = static_cast<int16_t>(byte);
  }
  return bytes;
}
constexpr std::array<int16_t, kCharacters> kBytes = make_bytes();

}  // namespace

std::optional<uint8_t> byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const auto high = hex_digit(text[3]);
  const auto low = hex_digit(text[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<uint8_t>(*high << 4 | *low);
}

std::optional<std::array<TokenId, 256>> find_byte_tokens(
    size_t count, const std::function<std::string_view(size_t)>& text_of) {
  std::array<TokenId, 256> ids{};
  std::array<bool, 256> found{};
  size_t missing = ids.size();
  for (size_t id = 0; id < count; ++id) {
    const auto byte = byte_of_token(text_of(id));
    if (!byte || found[*byte]) continue;
    found[*byte] = true;
    ids[*byte] = static_cast<TokenId>(id);
    --missing;
  }
  if (missing != 0) return std::nullopt;
  return ids;
}

std::optional<std::string> bytes_of_characters(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = char_at(text, at);
    if (!c.valid || c.code >= kCharacters || kBytes[c.code] < 0) return std::nullopt;
    bytes += static_cast<char>(kBytes[c.code]);
    at += c.size_bytes;
  }
  return bytes;
}

}  // namespace pteryx::llm

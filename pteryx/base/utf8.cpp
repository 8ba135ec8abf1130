// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/utf8.h"

namespace pteryx {
namespace {

struct Lead {
  uint32_t size_bytes = 0;  // 0: no character starts so
  uint8_t low = 0x80;       // bounds of the second byte, which rule out long forms and surrogates
  uint8_t high = 0xBF;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {.size_bytes = 1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {.size_bytes = 2};
  if (byte == 0xE0) return {.size_bytes = 3, .low = 0xA0};
  if (byte == 0xED) return {.size_bytes = 3, .high = 0x9F};
  if (byte < 0xF0) return {.size_bytes = 3};
  if (byte == 0xF0) return {.size_bytes = 4, .low = 0x90};
  if (byte < 0xF4) return {.size_bytes = 4};
  if (byte == 0xF4) return {.size_bytes = 4, .high = 0x8F};
  return {};
}

}  // namespace

Utf8Char long_char_at(std::string_view text, size_t at) {
  const auto first = static_cast<uint8_t>(text[at]);
  const Lead lead = lead_of(first);
  if (lead.size_bytes == 0) return {};
  char32_t code = first & (0x7FU >> lead.size_bytes);
  for (uint32_t i = 1; i < lead.size_bytes; ++i) {
    if (at + i >= text.size()) return {.size_bytes = i};
    const auto byte = static_cast<uint8_t>(text[at + i]);
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return {.size_bytes = i};
    code = code << 6 | (byte & 0x3FU);
  }
  return {.code = code, .size_bytes = lead.size_bytes, .valid = true};
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xE0 | code >> 12);
    } else {
      put(0xF0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3F));
    }
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = char_at(text, at);
    if (!c.valid) return false;
    at += c.size_bytes;
  }
  return true;
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = char_at(text, at);
    if (c.valid) {
      out += text.substr(at, c.size_bytes);
    } else {
      append_utf8(out, kReplacement);
    }
    at += c.size_bytes;
  }
  return out;
}

size_t complete_prefix(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const size_t at = text.size() - back;
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte >= 0x80 && byte < 0xC0) continue;
    const Utf8Char c = char_at(text, at);
    const bool unfinished = !c.valid && lead_of(byte).size_bytes > back && c.size_bytes == back;
    return unfinished ? at : text.size();
  }
  return text.size();
}

}  // namespace pteryx

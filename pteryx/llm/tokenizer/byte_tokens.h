// How vocabularies spell bytes: "<0x0A>" for one that has no character of its own, and the
// characters that byte-level vocabularies are written in.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm {

// The byte of "<0x0A>"; nullopt for any other text.
std::optional<uint8_t> byte_of_token(std::string_view text);

// The ids of the 256 byte tokens; nullopt unless all are there.
std::optional<std::array<TokenId, 256>> find_byte_tokens(
    size_t count, const std::function<std::string_view(size_t)>& text_of);

// The bytes that a text in GPT-2's characters for bytes means; nullopt if it has any other
// character.
std::optional<std::string> bytes_of_characters(std::string_view text);

}  // namespace pteryx::llm

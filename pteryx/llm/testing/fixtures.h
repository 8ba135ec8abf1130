// The committed tokenizers and templates, and what the reference engines made with them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "pteryx/base/file.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::llm::testing {

// A file below tests/fixtures; a missing one ends the test program.
std::shared_ptr<const MappedFile> open_fixture(const std::string& path);
nlohmann::json read_json_fixture(const std::string& path);

TokenizerPtr load_tokenizer(const std::string& name);  // of tests/fixtures/tokenizers
const nlohmann::json& tokenizer_goldens();

// Readers of texts, for tests of refusals.
inline Bytes bytes_of_text(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace pteryx::llm::testing

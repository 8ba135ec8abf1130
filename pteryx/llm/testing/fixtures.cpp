// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/llm/testing/fixtures.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace pteryx::llm::testing {
namespace {

[[noreturn]] void stop(const std::string& path, std::string_view why) {
  std::fprintf(stderr, "%s: %.*s\n", path.c_str(), static_cast<int>(why.size()), why.data());
  std::abort();
}

}  // namespace

std::shared_ptr<const MappedFile> open_fixture(const std::string& path) {
  auto file = MappedFile::open(std::string(PTERYX_FIXTURES) + "/" + path);
  if (!file.ok()) stop(path, file.status().message());
  return *file;
}

nlohmann::json read_json_fixture(const std::string& path) {
  const auto file = open_fixture(path);
  const auto* const text = reinterpret_cast<const char*>(file->bytes().data());
  auto json = nlohmann::json::parse(text, text + file->bytes().size(), nullptr, false);
  if (json.is_discarded()) stop(path, "not JSON");
  return json;
}

TokenizerPtr load_tokenizer(const std::string& name) {
  auto tokenizer = read_tokenizer(open_fixture("tokenizers/" + name)->bytes());
  if (!tokenizer.ok()) stop(name, tokenizer.status().message());
  return std::move(tokenizer).value();
}

const nlohmann::json& tokenizer_goldens() {
  static const nlohmann::json kGoldens = read_json_fixture("tokenizers/goldens.json");
  return kGoldens;
}

}  // namespace pteryx::llm::testing

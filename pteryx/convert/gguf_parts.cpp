// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/gguf_parts.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

namespace pteryx::convert {
namespace {

constexpr std::string_view kOf = "-of-";
constexpr size_t kDigits = 5;

struct PartName {
  std::string before, after;  // "folder/NAME", ".gguf"
  int64_t parts = 0;

  std::string path(int64_t part) const {
    return fmt::format("{}-{:05}{}{:05}{}", before, part + 1, kOf, parts, after);
  }
};

std::optional<int64_t> five_digits(std::string_view text) {
  if (text.size() != kDigits) return std::nullopt;
  int64_t n = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    n = n * 10 + (c - '0');
  }
  return n > 0 ? std::optional(n) : std::nullopt;
}

std::optional<PartName> part_name(const std::string& path) {
  const std::string_view text = path;
  const size_t of = text.rfind(kOf);
  if (of == std::string_view::npos || of < kDigits + 1 || text[of - kDigits - 1] != '-') {
    return std::nullopt;
  }
  const auto part = five_digits(text.substr(of - kDigits, kDigits));
  const auto parts = five_digits(text.substr(of + kOf.size(), kDigits));
  const std::string_view after = text.substr(std::min(of + kOf.size() + kDigits, text.size()));
  if (!part || !parts || *part > *parts || after.find('/') != std::string_view::npos) {
    return std::nullopt;
  }
  return PartName{path.substr(0, of - kDigits - 1), std::string(after), *parts};
}

Result<GgufFile> open_part(const std::string& path) {
  PTERYX_ASSIGN(const SourcePtr file, open_source(path));
  auto parsed = GgufFile::parse(file);
  if (!parsed.ok()) return std::move(parsed).status().during("reading " + path);
  return parsed;
}

}  // namespace

bool is_part_name(const std::string& path) {
  const auto name = part_name(path);
  return name && name->parts > 1;
}

Result<std::vector<std::string>> gguf_parts(const std::string& path, const GgufFile& file) {
  const GgufSplit& split = file.split();
  if (split.parts <= 1) return std::vector{path};
  const auto name = part_name(path);
  if (!name || name->parts != split.parts || name->path(split.part) != path) {
    return invalid_program(
        fmt::format("{}: part {} of {} of a model has to be named NAME-{:05}-of-{:05}.gguf, beside "
                    "the others",
                    path, split.part + 1, split.parts, split.part + 1, split.parts));
  }
  std::vector<std::string> paths;
  for (int64_t i = 0; i < split.parts; ++i) {
    paths.push_back(name->path(i));
    std::error_code ignored;
    if (!std::filesystem::exists(paths.back(), ignored)) {
      return io_error(fmt::format("{}: part {} of {} of the model is missing", paths.back(), i + 1,
                                  split.parts));
    }
  }
  return paths;
}

Result<std::vector<GgufFile>> open_gguf(const std::string& path) {
  PTERYX_ASSIGN(GgufFile given, open_part(path));
  PTERYX_ASSIGN(const std::vector<std::string> paths, gguf_parts(path, given));
  std::vector<GgufFile> parts;
  if (paths.size() == 1) {
    parts.push_back(std::move(given));
    return parts;
  }
  for (const std::string& p : paths) {
    PTERYX_ASSIGN(GgufFile part, open_part(p));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace pteryx::convert

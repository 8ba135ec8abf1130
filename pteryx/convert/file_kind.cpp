// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/file_kind.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "pteryx/base/bytes.h"
#include "pteryx/convert/llama2c.h"
#include "pteryx/convert/safetensors.h"

namespace pteryx::convert {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The length of a JSON header, and the header; it may have been cut short.
bool is_safetensors(std::string_view start) {
  const auto header = read_at<uint64_t>(std::as_bytes(std::span(start)), 0);
  return header && *header <= kLargestSafetensorsHeader && start.size() > 8 && start[8] == '{';
}

// The identifier of a FlatBuffer is behind the offset of its root: "ET12".
bool is_program(std::string_view start) {
  return start.size() >= 8 && start.substr(4, 2) == "ET" && is_digit(start[6]) &&
         is_digit(start[7]);
}

// Protocols 2 to 5.
bool is_pickle(std::string_view start) {
  return start.size() > 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5;
}

}  // namespace

std::string_view describe(FileKind kind) {
  switch (kind) {
    case FileKind::kHuggingFace: return "a Hugging Face folder";
    case FileKind::kFolder: return "a folder without config.json";
    case FileKind::kEmpty: return "an empty file";
    case FileKind::kProgram: return "a program (.pte)";
    case FileKind::kProgramData: return "program data (.ptd)";
    case FileKind::kGguf: return "a GGUF file";
    case FileKind::kSafetensors: return "a safetensors file";
    case FileKind::kLlama2c: return "a llama2.c checkpoint";
    case FileKind::kPyTorch: return "a PyTorch checkpoint";
    case FileKind::kJson: return "a JSON file";
    case FileKind::kUnknown: break;
  }
  return "an unknown kind of file";
}

Result<FileKind> file_kind(const SourcePtr& file) {
  if (file->size() == 0) return FileKind::kEmpty;
  std::array<char, 64> buffer{};
  const uint64_t size = std::min<uint64_t>(file->size(), buffer.size());
  PTERYX_TRY(file->read_now(0, std::as_writable_bytes(std::span(buffer).first(size))));
  const std::string_view start(buffer.data(), size);
  if (start.starts_with("GGUF")) return FileKind::kGguf;
  if (start.starts_with("PK\x03\x04")) return FileKind::kPyTorch;
  if (is_program(start)) return FileKind::kProgram;
  if (start.size() >= 8 && start.substr(4, 4) == "FT01") return FileKind::kProgramData;
  if (is_safetensors(start)) return FileKind::kSafetensors;
  if (is_pickle(start)) return FileKind::kPyTorch;
  const size_t first = start.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && start[first] == '{') return FileKind::kJson;
  auto llama2c = parse_llama2c(file);
  if (llama2c.ok()) return FileKind::kLlama2c;
  if (llama2c.status().code() == Code::kIo) return std::move(llama2c).status();
  return FileKind::kUnknown;
}

Result<FileKind> file_kind(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const bool config =
        std::filesystem::exists(std::filesystem::path(path) / "config.json", ignored);
    return config ? FileKind::kHuggingFace : FileKind::kFolder;
  }
  PTERYX_ASSIGN(const SourcePtr file, open_source(path));
  return file_kind(file);
}

}  // namespace pteryx::convert

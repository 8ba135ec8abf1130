// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/file_kind.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <span>

#include "pteryx/base/bytes.h"
#include "pteryx/convert/llama2c.h"

namespace pteryx::convert {
namespace {

bool is_safetensors(std::string_view start, uint64_t file_bytes) {
  const auto header = read_at<uint64_t>(std::as_bytes(std::span(start)), 0);
  return header && start.size() > 8 && start[8] == '{' && *header <= file_bytes - 8;
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
    case FileKind::kEmpty: return "empty";
    case FileKind::kProgram: return "a program (.pte)";
    case FileKind::kProgramData: return "program data (.ptd)";
    case FileKind::kGguf: return "a GGUF file";
    case FileKind::kSafetensors: return "a safetensors file";
    case FileKind::kLlama2c: return "a llama2.c checkpoint";
    case FileKind::kPyTorch: return "a PyTorch checkpoint";
    case FileKind::kJson: return "a JSON file";
    case FileKind::kUnknown: break;
  }
  return "of no known kind";
}

Result<FileKind> file_kind(const SourcePtr& file) {
  if (file->size() == 0) return FileKind::kEmpty;
  std::array<char, 64> buffer{};
  const uint64_t size = std::min<uint64_t>(file->size(), buffer.size());
  PTERYX_TRY(file->read(0, std::as_writable_bytes(std::span(buffer).first(size))));
  const std::string_view start(buffer.data(), size);
  if (start.starts_with("GGUF")) return FileKind::kGguf;
  if (start.starts_with("PK\x03\x04")) return FileKind::kPyTorch;
  // A FlatBuffer has its identifier behind the offset of its root.
  const std::string_view identifier = start.substr(std::min<size_t>(start.size(), 4), 4);
  if (identifier.starts_with("ET") && identifier.size() == 4) return FileKind::kProgram;
  if (identifier == "FT01") return FileKind::kProgramData;
  if (is_safetensors(start, file->size())) return FileKind::kSafetensors;
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

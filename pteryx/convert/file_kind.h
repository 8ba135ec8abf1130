// What a file is, told by its content: names and extensions say nothing.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/base/status.h"

namespace pteryx::convert {

enum class FileKind : uint8_t {
  kHuggingFace,  // a folder with config.json
  kFolder,       // any other folder
  kEmpty,
  kProgram,      // .pte
  kProgramData,  // .ptd
  kGguf,
  kSafetensors,
  kLlama2c,
  kPyTorch,  // a ZIP archive or a pickle
  kJson,     // an object: tokenizer.json, config.json, ...
  kUnknown,
};
std::string_view describe(FileKind kind);  // "a GGUF file"

// Errors: kIo.
Result<FileKind> file_kind(const std::string& path);
Result<FileKind> file_kind(const SourcePtr& file);

// Whether `convert` reads it.
constexpr bool is_convertible(FileKind kind) {
  return kind == FileKind::kGguf || kind == FileKind::kHuggingFace || kind == FileKind::kLlama2c;
}

// All files that a conversion of `source` reads: the file, every part of a split GGUF, or those of
// a Hugging Face folder that are used. A file that convert does not take is just itself. Errors:
// kIo (also for a part that is missing), kInvalidProgram, kUnsupported.
Result<std::vector<std::string>> source_files(const std::string& source);

}  // namespace pteryx::convert

// From a path to a model: which kind of source it is, which files it has, and whether what it says
// beside the weights can be used.
// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "pteryx/convert/file_kind.h"
#include "pteryx/convert/gguf_parts.h"
#include "pteryx/convert/llama2c.h"
#include "pteryx/convert/model.h"
#include "pteryx/llm/tokenizer/embedded.h"
#include "pteryx/llm/tokenizer/tokenizer.h"

namespace pteryx::convert {
namespace {

constexpr std::string_view kExpected =
    "expected a GGUF file, a Hugging Face folder or a llama2.c checkpoint";

// Why a file of this kind is no source.
Status refuse(const std::string& path, FileKind kind) {
  switch (kind) {
    case FileKind::kProgram:
      return invalid_argument(fmt::format("{} is already a program: use it directly", path));
    case FileKind::kSafetensors:
    case FileKind::kJson:
      return invalid_argument(
          fmt::format("{} is {}: give the folder that holds config.json", path, describe(kind)));
    case FileKind::kPyTorch:
      return unsupported(fmt::format(
          "{} is a PyTorch checkpoint: of Hugging Face folders only safetensors are read", path));
    default: return invalid_program(fmt::format("{} is {}: {}", path, describe(kind), kExpected));
  }
}

// A file of no known kind may be a llama2.c checkpoint of the wrong length: then say so.
Status refuse_unknown(const std::string& path, const SourcePtr& file) {
  const auto parsed = parse_llama2c(file);
  const std::string_view why = parsed.ok() ? std::string_view() : parsed.status().message();
  if (!why.starts_with("llama2.c")) return refuse(path, FileKind::kUnknown);
  return invalid_program(fmt::format("{}: {}: truncated, or no such file at all", path, why));
}

Result<Model> model_from_file(const std::string& path, TokenizerFrom tokenizer) {
  PTERYX_ASSIGN(const SourcePtr file, open_source(path));
  PTERYX_ASSIGN(const FileKind kind, file_kind(file));
  if (kind == FileKind::kUnknown) return refuse_unknown(path, file);
  if (!is_convertible(kind)) return refuse(path, kind);
  std::vector<GgufFile> parts;
  if (kind == FileKind::kGguf) {
    PTERYX_ASSIGN(parts, open_gguf(path));
  }
  auto m = kind == FileKind::kGguf ? model_from_gguf(std::move(parts), tokenizer)
                                   : model_from_llama2c(file);
  if (!m.ok()) return std::move(m).status().during("reading " + path);
  return m;
}

// What certainly is no tokenizer; the rest is for its reader to say.
bool is_other(FileKind kind) {
  return kind == FileKind::kProgram || kind == FileKind::kProgramData || kind == FileKind::kGguf ||
         kind == FileKind::kSafetensors || kind == FileKind::kPyTorch;
}

Status replace_tokenizer(const std::string& path, ModelTexts& texts) {
  PTERYX_ASSIGN(const SourcePtr file, open_source(path));
  PTERYX_ASSIGN(const FileKind kind, file_kind(file));
  if (is_other(kind)) {
    return invalid_argument(
        fmt::format("{} is {}: expected a tokenizer (tokenizer.json, or the tokenizer of "
                    "SentencePiece, tiktoken or llama2.c)",
                    path, describe(kind)));
  }
  PTERYX_ASSIGN(texts.tokenizer, read_all(*file, llm::kLargestTokenizer));
  texts.tokenizer_kind = name(llm::tokenizer_file(std::as_bytes(std::span(texts.tokenizer))));
  return {};
}

}  // namespace

Result<Model> open_model(const std::string& path, const std::string& tokenizer) {
  const auto from = tokenizer.empty() ? TokenizerFrom::kSource : TokenizerFrom::kElsewhere;
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  if (folder) {
    PTERYX_ASSIGN(const FileKind kind, file_kind(path));
    if (kind != FileKind::kHuggingFace) return refuse(path, kind);
  }
  PTERYX_ASSIGN(Model m, folder ? model_from_folder(path, from) : model_from_file(path, from));
  if (!tokenizer.empty()) PTERYX_TRY(replace_tokenizer(tokenizer, m.texts));
  PTERYX_TRY(
      check_texts(m, llm::read_embedded_tokenizer, path, tokenizer.empty() ? path : tokenizer));
  return m;
}

Result<std::vector<std::string>> source_files(const std::string& source) {
  PTERYX_ASSIGN(const FileKind kind, file_kind(source));
  if (kind == FileKind::kHuggingFace) return folder_files(source);
  if (kind == FileKind::kFolder) return refuse(source, kind);
  if (kind != FileKind::kGguf || !is_part_name(source)) return std::vector{source};
  PTERYX_ASSIGN(const SourcePtr file, open_source(source));
  PTERYX_ASSIGN(const GgufFile part, GgufFile::parse(file));
  return gguf_parts(source, part);
}

}  // namespace pteryx::convert

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/file_kind.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pteryx/convert/testing/refusal.h"
#include "pteryx/convert/testing/tiny_model.h"

namespace pteryx::convert {
namespace {

using testing::Blocks;
using testing::expect_converted;
using testing::expect_refused;
using testing::TempFolder;
using testing::TinyModel;

TinyModel tiny() {
  ModelShape s = testing::tiny_shape("llama", RopeLayout::kPairs);
  s.head_size = 8;
  return testing::make_model(s, testing::Grid::kSigned4);
}

// Under names that say nothing, or the wrong thing.
TEST(FileKind, IsTheContents) {
  const std::string zip("PK\x03\x04 and more", 13);
  const std::string pickle("\x80\x02}q", 4);
  const std::pair<std::string, FileKind> files[] = {
      {"", FileKind::kEmpty},
      {testing::gguf_of(tiny(), Blocks::kF32).finish(), FileKind::kGguf},
      {testing::safetensors_of(tiny()), FileKind::kSafetensors},
      {testing::llama2c_of(tiny()), FileKind::kLlama2c},
      {testing::llama2c_of(tiny()) + "x", FileKind::kUnknown},
      {std::string("\x1c\0\0\0ET12eh00", 12), FileKind::kProgram},
      {std::string("\x1c\0\0\0FT01FH01", 12), FileKind::kProgramData},
      {zip, FileKind::kPyTorch},
      {pickle, FileKind::kPyTorch},
      {" \n{\"model\": 1}", FileKind::kJson},
      {testing::safetensors_of(tiny()).substr(0, 100), FileKind::kSafetensors},
      {"hello", FileKind::kUnknown},
      {"A PET is fine", FileKind::kUnknown},
      {"x", FileKind::kUnknown},
  };
  for (const auto& [content, kind] : files) {
    for (const char* name : {"blob", "m.GGUF", "x.pte", "y.bin"}) {
      const TempFolder folder;
      testing::write_file(folder / name, content);
      const auto got = file_kind(folder / name);
      ASSERT_TRUE(got.ok()) << got.status().message();
      EXPECT_EQ(describe(*got), describe(kind)) << name;
    }
  }
  const TempFolder folder;
  EXPECT_EQ(*file_kind(folder.path().string()), FileKind::kFolder);
  testing::write_file(folder / "config.json", "{}");
  EXPECT_EQ(*file_kind(folder.path().string()), FileKind::kHuggingFace);
  EXPECT_EQ(file_kind(folder / "absent").status().code(), Code::kIo);
}

TEST(FileKind, WhatIsNoSourceIsSaid) {
  const TempFolder folder;
  const auto refused = [&](std::string_view content, Code code, std::string_view message) {
    testing::write_file(folder / "x", content);
    expect_refused(folder / "x", {}, code, (folder / "x") + std::string(message));
  };
  refused(std::string("\x1c\0\0\0ET12eh00", 12), Code::kInvalidArgument,
          " is already a program: use it directly");
  refused(testing::safetensors_of(tiny()), Code::kInvalidArgument,
          " is a safetensors file: give the folder that holds config.json");
  refused("{}", Code::kInvalidArgument, " is a JSON file: give the folder that holds config.json");
  refused(std::string("PK\x03\x04 and more", 13), Code::kUnsupported,
          " is a PyTorch checkpoint: of Hugging Face folders only safetensors are read");
  refused(
      "", Code::kInvalidProgram,
      " is an empty file: expected a GGUF file, a Hugging Face folder or a llama2.c checkpoint");
  refused("hello", Code::kInvalidProgram,
          " is an unknown kind of file: expected a GGUF file, a Hugging Face folder or a llama2.c "
          "checkpoint");
  const std::string checkpoint = testing::llama2c_of(tiny());
  refused(checkpoint + "x", Code::kInvalidProgram,
          fmt::format(": llama2.c: expected {} bytes, got {}: truncated, or no such file at all",
                      checkpoint.size(), checkpoint.size() + 1));
  std::filesystem::create_directory(folder / "empty");
  expect_refused(folder / "empty", {}, Code::kInvalidProgram,
                 (folder / "empty") + " is a folder without config.json: expected");
}

TEST(FileKind, NamesDoNotMatter) {
  const TempFolder folder;
  for (const char* name : {"m.GGUF", "sha256-0123", "m.pte", "m.bin"}) {
    testing::write_file(folder / name, testing::gguf_of(tiny(), Blocks::kF32).finish());
    expect_converted(folder / name);
  }
  testing::write_file(folder / "m.gguf", testing::llama2c_of(tiny()));
  expect_converted(folder / "m.gguf");
}

TEST(SourceFiles, OfAFolder) {
  const TempFolder folder;
  testing::write_folder(tiny(), folder / "hf");
  using Files = std::vector<std::string>;
  EXPECT_EQ(*source_files(folder / "hf"),
            (Files{folder / "hf/config.json", folder / "hf/model.safetensors"}));
  for (const char* file : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json",
                           "generation_config.json", "chat_template.jinja", "README.md"}) {
    testing::write_file((folder / "hf/") + file, "{}");
  }
  EXPECT_EQ(*source_files(folder / "hf"),
            (Files{folder / "hf/config.json", folder / "hf/generation_config.json",
                   folder / "hf/tokenizer.json", folder / "hf/tokenizer_config.json",
                   folder / "hf/chat_template.jinja", folder / "hf/model.safetensors"}));
  testing::write_folder(tiny(), folder / "shards", 8);
  const auto files = source_files(folder / "shards");
  ASSERT_TRUE(files.ok()) << files.status().message();
  EXPECT_EQ((*files)[1], folder / "shards/model.safetensors.index.json");
  EXPECT_EQ(files->size(), 2 + (tiny().tensors.size() + 7) / 8);
  EXPECT_FALSE(source_files(folder / "absent").ok());
  EXPECT_FALSE(source_files(folder.path().string()).ok());
}

TEST(SplitGguf, AnyPartIsTheModel) {
  const TempFolder folder;
  const TinyModel m = tiny();
  testing::write_file(folder / "whole.gguf", testing::gguf_of(m, Blocks::kF32).finish());
  ASSERT_TRUE(convert(folder / "whole.gguf", folder / "whole.pte", {}).ok());
  const auto parts = testing::write_split_gguf(m, folder / "m", 3);
  for (const std::string& part : parts) {
    const auto r = convert(part, folder / "m.pte", {});
    ASSERT_TRUE(r.ok()) << r.status().message();
    EXPECT_EQ(testing::read_file(folder / "m.pte"), testing::read_file(folder / "whole.pte"));
    EXPECT_EQ(*source_files(part), parts);
  }
  // Named like a part, but whole.
  const std::string alone = folder / "a-00001-of-00002.gguf";
  std::filesystem::copy_file(folder / "whole.gguf", alone);
  expect_converted(alone);
  EXPECT_EQ(*source_files(alone), std::vector<std::string>{alone});
}

TEST(SplitGguf, PartsThatAreMissingOrOthers) {
  const TempFolder folder;
  const auto parts = testing::write_split_gguf(tiny(), folder / "m", 3);
  std::filesystem::copy_file(parts[1], folder / "alone.gguf");
  expect_refused(folder / "alone.gguf", {}, Code::kInvalidProgram,
                 "part 2 of 3 of a model has to be named NAME-00002-of-00003.gguf");
  const std::string second = testing::read_file(parts[1]);
  std::filesystem::remove(parts[1]);
  expect_refused(parts[0], {}, Code::kIo, parts[1] + ": part 2 of 3 of the model is missing");
  EXPECT_EQ(source_files(parts[2]).status().message(),
            parts[1] + ": part 2 of 3 of the model is missing");
  std::filesystem::copy_file(parts[2], parts[1]);
  expect_refused(parts[0], {}, Code::kInvalidProgram,
                 parts[1] + ": expected part 2 of 3, got part 3 of 3");
  testing::write_file(parts[1], testing::gguf_of(tiny(), Blocks::kF32).finish());
  expect_refused(parts[0], {}, Code::kInvalidProgram,
                 parts[1] + ": expected part 2 of 3, got part 1 of 1");
  testing::write_file(parts[1], second.substr(0, second.size() / 2));
  expect_refused(parts[0], {}, Code::kInvalidProgram, "while reading " + parts[1]);
}

TEST(SplitGguf, TensorsAreThereOnceAndAllOfThem) {
  const auto part = [](uint32_t number, uint32_t tensors, const char* tensor) {
    testing::GgufBuilder b;
    b.u32("split.no", number);
    b.u32("split.count", 2);
    b.u32("split.tensors.count", tensors);
    b.tensor(tensor, 0, {1}, testing::as_f32({1}));
    return b.finish();
  };
  const TempFolder folder;
  const std::string first = folder / "m-00001-of-00002.gguf";
  const std::string second = folder / "m-00002-of-00002.gguf";
  testing::write_file(first, part(0, 3, "a"));
  testing::write_file(second, part(1, 3, "b"));
  expect_refused(first, {}, Code::kInvalidProgram,
                 first + ": 'split.tensors.count': expected 2, got 3");
  testing::write_file(first, part(0, 2, "a"));
  testing::write_file(second, part(1, 2, "a"));
  expect_refused(first, {}, Code::kInvalidProgram, second + ": tensor 'a' is also in " + first);
}

}  // namespace
}  // namespace pteryx::convert

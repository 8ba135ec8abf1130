// A conversion step by step, from a source that may keep one waiting: what a page does.
//
//   Conversion conversion(gguf, {}, output);
//   for (;;) {
//     Result<bool> done = conversion.advance();
//     if (!done.ok()) return std::move(done).status();
//     if (*done) break;
//   }
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/convert.h"
#include "pteryx/convert/load_decoder.h"
#include "pteryx/convert/program_writer.h"

namespace pteryx::convert {

class ReplayedSource;

// Writes what convert() writes. One GGUF file is one model: parts of a split one are refused. Of
// the options, `tokenizer`, `progress` and `threads` are not used.
class Conversion {
 public:
  // The output outlives it.
  Conversion(SourcePtr gguf, ConvertOptions options, ProgramOutput& output);
  Conversion(const Conversion&) = delete;
  Conversion& operator=(const Conversion&) = delete;
  ~Conversion();

  // Some milliseconds of work; true once all is written. Errors: those of convert().
  Result<bool> advance();

  // Whether the header was read and accepted: all of the source will be read.
  bool is_open() const { return stage_ != Stage::kOpen; }
  // From 0 to 1; never decreases.
  double fraction() const;
  uint64_t file_bytes() const;  // of the program; 0 until it is known
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  enum class Stage : uint8_t { kOpen, kLoad, kChoose, kWrite, kDone };

  Result<bool> open();
  Result<bool> load();
  Result<bool> choose();
  Result<bool> write();
  Result<Model> read_model() const;

  std::shared_ptr<ReplayedSource> source_;
  ConvertOptions options_;
  ProgramOutput& output_;
  Stage stage_ = Stage::kOpen;
  std::vector<std::string> warnings_;
  std::optional<Model> model_;
  DecoderOptions decoder_options_;
  std::optional<LoadedDecoder> loaded_;
  int64_t elems_ = 0, decided_elems_ = 0;  // of all matrices
  size_t next_ = 0;                        // matrix to decide, or piece to write
  std::unique_ptr<ProgramWriter> writer_;
  std::vector<ProgramPiece*> pieces_;
};

}  // namespace pteryx::convert

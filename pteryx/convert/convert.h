// Other weights to a .pte: what `pteryx convert` and `pteryx synth` do.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pteryx/base/dtype.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/file_kind.h"
#include "pteryx/convert/matrix.h"
#include "pteryx/convert/model.h"
#include "pteryx/convert/program_writer.h"

namespace pteryx::convert {

enum class Quantize : uint8_t {
  kAuto,  // keep what the target holds exactly, else the smallest format within kErrorBound
  kNone,
  kF16,
  kQ8,
  kQ4,
};

// Relative error (RMS of the difference over RMS of the tensor) that kAuto accepts.
inline constexpr double kErrorBound = 0.02;

struct ConvertOptions {
  Quantize quantize = Quantize::kAuto;
  int64_t group_size = 32;   // of 4-bit weights
  int64_t max_context = 0;   // 0: what the model was trained for, at most kUsualContext
  int64_t max_tokens = 512;  // of one call
  DType kv_type = DType::kF32;
  std::string tokenizer = {};  // file that replaces the source's own; its content says its kind
  Progress progress = nullptr;
  uint32_t threads = 0;  // 0: as many as pay; the program is the same with any
};
inline constexpr int64_t kUsualContext = 2048;

struct TensorReport {
  std::string name;
  Dims dims;
  std::string source;  // "Q4_0"
  std::string target;  // "q4/32"
  uint64_t bytes = 0;  // in the program, scales included
  double error = 0;    // relative
};

struct ConvertReport {
  ModelShape shape;
  int64_t max_context = 0;
  int64_t max_tokens = 0;
  uint64_t file_bytes = 0;
  std::vector<TensorReport> tensors;
  std::vector<std::string> warnings;  // what some command will refuse of the program
};

// Errors: kIo, kInvalidProgram (the source), kInvalidArgument (the options, an output that is one
// of the inputs, a file that is no source), kUnsupported, kCancelled. On any of them there is no
// output file.
Result<ConvertReport> convert(const std::string& source, const std::string& path,
                              const ConvertOptions& options);

// Goes up with every change of what a conversion gives, so that kept ones are made anew.
inline constexpr int kConverterVersion = 2;

struct SynthOptions {
  std::string preset = "tiny";  // one of synth_presets()
  uint64_t seed = 0;
  ConvertOptions convert = {};  // kAuto is kQ4 here
};
std::vector<std::string> synth_presets();
// A program of a known shape with random weights, the same for the same seed. Errors:
// kInvalidArgument, kIo, kCancelled.
Result<ConvertReport> synth(const std::string& path, const SynthOptions& options);

}  // namespace pteryx::convert

// What converted and made-up models have in common: options that fit a model, and its report.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/convert/convert.h"
#include "pteryx/convert/decoder.h"

namespace pteryx::convert {

// What can be said without a model. Errors: kInvalidArgument.
Status check_options(const ConvertOptions& options);
// Errors: kInvalidArgument.
Result<DecoderOptions> decoder_options(const ModelShape& shape, const ConvertOptions& options);

// Of a program that is written.
ConvertReport report(const Decoder& d, const DecoderOptions& options, uint64_t file_bytes);

// The program of a decoder as a file, made on so many threads (0: as many as pay); the file is the
// same whatever their number. It appears when it is complete, or not at all. `progress` is called
// from this thread. Errors: kIo, kCancelled, those of the blobs.
Result<ConvertReport> write_model(const Decoder& d, const DecoderOptions& options,
                                  std::vector<Attachment> attachments, const std::string& path,
                                  const Progress& progress, uint32_t threads);

}  // namespace pteryx::convert

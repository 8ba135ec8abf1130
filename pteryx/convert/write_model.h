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

// Errors: kInvalidArgument.
Result<DecoderOptions> decoder_options(const ModelShape& shape, const ConvertOptions& options);

// Errors: those of write_program.
Result<ConvertReport> write_model(const Decoder& d, const DecoderOptions& options,
                                  std::vector<Attachment> attachments, const std::string& path,
                                  const Progress& progress, uint32_t threads);

}  // namespace pteryx::convert

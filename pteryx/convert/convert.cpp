// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/convert.h"

#include <fmt/format.h>

#include "pteryx/base/same_file.h"
#include "pteryx/convert/load_decoder.h"
#include "pteryx/convert/parallel.h"
#include "pteryx/convert/write_model.h"

namespace pteryx::convert {
namespace {

// The output must not be what is still being read.
Status check_output(const std::string& source, const std::string& path,
                    const ConvertOptions& options) {
  PTERYX_ASSIGN(const std::vector<std::string> files, source_files(source));
  for (const std::string& file : files) {
    if (!same_file(file, path)) continue;
    return invalid_argument(
        file == source ? fmt::format("the output {} is the source itself", path)
                       : fmt::format("the output {} is {}, a file of the source", path, file));
  }
  if (!options.tokenizer.empty() && same_file(options.tokenizer, path)) {
    return invalid_argument(fmt::format("the output {} is the tokenizer", path));
  }
  return {};
}

// Looks at the rows of all matrices where that is necessary.
Status decide(std::vector<std::unique_ptr<Undecided>>& undecided, const ConvertOptions& options) {
  int64_t all = 0;
  for (const auto& u : undecided) all += u->elems();
  const auto decide_one = [&](size_t i, const Stopped& stopped) {
    return finish_now(*undecided[i], stopped);
  };
  return run_parallel(undecided.size(), threads_for(options.threads, static_cast<uint64_t>(all)),
                      decide_one, [&] { return !options.progress || options.progress(0, 1); });
}

}  // namespace

Result<ConvertReport> convert(const std::string& source, const std::string& path,
                              const ConvertOptions& options) {
  PTERYX_TRY(check_options(options));
  PTERYX_ASSIGN(Model model, open_model(source, options.tokenizer));
  PTERYX_TRY(check_output(source, path, options));
  PTERYX_ASSIGN(const DecoderOptions decoder, decoder_options(model.shape, options));
  PTERYX_ASSIGN(LoadedDecoder loaded, load_decoder(model, options));
  PTERYX_TRY(decide(loaded.undecided, options));
  PTERYX_ASSIGN(ConvertReport report,
                write_model(loaded.decoder, decoder, std::move(model.texts).attachments(), path,
                            options.progress, options.threads));
  report.warnings = std::move(model.warnings);
  return report;
}

}  // namespace pteryx::convert

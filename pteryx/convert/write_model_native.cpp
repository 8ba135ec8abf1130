// Programs as files, on several threads. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>

#include "pteryx/base/output_file.h"
#include "pteryx/convert/parallel.h"
#include "pteryx/convert/program_writer.h"
#include "pteryx/convert/write_model.h"

namespace pteryx::convert {
namespace {

class FileOutput final : public ProgramOutput {
 public:
  explicit FileOutput(OutputFile& file) : file_(file) {}
  Status write_at(uint64_t offset, Bytes bytes) override { return file_.write_at(offset, bytes); }

 private:
  OutputFile& file_;
};

}  // namespace

Result<ConvertReport> write_model(const Decoder& d, const DecoderOptions& options,
                                  std::vector<Attachment> attachments, const std::string& path,
                                  const Progress& progress, uint32_t threads) {
  ProgramSpec spec = decoder_program(d, options);
  spec.attachments = std::move(attachments);
  PTERYX_ASSIGN(OutputFile file, OutputFile::create(path));
  FileOutput output(file);
  ProgramWriter writer(std::move(spec), output);
  // The largest first, so that no thread begins the longest work when the others are done.
  std::vector<ProgramPiece*> pieces = writer.pieces();
  std::ranges::stable_sort(pieces, std::ranges::greater(), &ProgramPiece::size);
  const auto write = [&](size_t i, const Stopped& stopped) {
    return finish_now(*pieces[i], stopped);
  };
  const auto proceed = [&] { return !progress || progress(writer.written(), writer.data_bytes()); };
  PTERYX_TRY(
      run_parallel(pieces.size(), threads_for(threads, writer.data_bytes()), write, proceed));
  PTERYX_TRY(writer.finish());
  PTERYX_TRY(file.commit());
  return report(d, options, writer.file_bytes());
}

}  // namespace pteryx::convert

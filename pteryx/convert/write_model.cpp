// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/write_model.h"

#include <algorithm>

#include <fmt/format.h>

namespace pteryx::convert {
namespace {

constexpr int64_t kLargestContext = 1 << 20;

TensorReport report(const EncodedMatrix& m) {
  const Encoding& e = m.encoding();
  const int64_t element = e.target == Target::kF32 ? 4 : e.target == Target::kF16 ? 2 : 1;
  const int64_t rows = m.matrix().rows;
  return {.name = m.matrix().name,
          .dims = {rows, m.matrix().cols},
          .source = m.matrix().source,
          .target =
              e.target == Target::kQ4 ? fmt::format("q4/{}", e.group) : std::string(name(e.target)),
          .bytes = static_cast<uint64_t>(rows * m.weight_cols() * element + rows * m.groups() * 4),
          .error = m.error().relative()};
}

}  // namespace

Result<DecoderOptions> decoder_options(const ModelShape& shape, const ConvertOptions& o) {
  DecoderOptions out;
  out.max_context = o.max_context != 0 ? o.max_context : std::min(shape.context, kUsualContext);
  const int64_t most = std::min(shape.context, kLargestContext);
  if (out.max_context < 1 || out.max_context > most) {
    return invalid_argument(
        fmt::format("context: expected 1 to {}, got {}", most, out.max_context));
  }
  if (o.max_tokens < 2) {
    return invalid_argument(
        fmt::format("tokens of a call: expected 2 or more, got {}", o.max_tokens));
  }
  out.max_tokens = std::min(o.max_tokens, out.max_context);
  out.kv_type = o.kv_type;
  return out;
}

Result<ConvertReport> write_model(const Decoder& d, const DecoderOptions& options,
                                  std::vector<Attachment> attachments, const std::string& path,
                                  const Progress& progress, uint32_t threads) {
  ProgramSpec program = decoder_program(d, options);
  program.attachments = std::move(attachments);
  ConvertReport r{
      .shape = d.shape, .max_context = options.max_context, .max_tokens = options.max_tokens};
  PTERYX_ASSIGN(r.file_bytes, write_program(program, path, progress, threads));
  r.tensors.push_back(report(*d.embedding));
  for (const Layer& l : d.layers) {
    for (const Linear* m : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) {
      r.tensors.push_back(report(*m->weight));
    }
  }
  if (d.output.weight != d.embedding) r.tensors.push_back(report(*d.output.weight));
  return r;
}

}  // namespace pteryx::convert

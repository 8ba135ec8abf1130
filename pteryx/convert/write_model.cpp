// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/write_model.h"

#include <algorithm>

#include <fmt/format.h>

namespace pteryx::convert {
namespace {

constexpr int64_t kLargestContext = 1 << 20;
constexpr int64_t kLargestGroup = 1 << 16;

TensorReport report_of(const EncodedMatrix& m) {
  const Encoding& e = m.encoding();
  const int64_t element = e.target == Target::kF32 ? 4 : e.target == Target::kF16 ? 2 : 1;
  const int64_t rows = m.matrix().rows;
  const int64_t numbers = rows * m.groups() * (e.minimums ? 2 : 1);
  return {.name = m.matrix().name,
          .dims = {rows, m.matrix().cols},
          .source = m.matrix().source,
          .target = describe(e),
          .bytes = static_cast<uint64_t>(rows * m.weight_cols() * element + numbers * 4),
          .error = m.error().relative()};
}

}  // namespace

Status check_options(const ConvertOptions& o) {
  if (o.group_size >= 1 && o.group_size <= kLargestGroup) return {};
  return invalid_argument(
      fmt::format("group size: expected 1 to {}, got {}", kLargestGroup, o.group_size));
}

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

ConvertReport report(const Decoder& d, const DecoderOptions& options, uint64_t file_bytes) {
  ConvertReport r{.shape = d.shape,
                  .max_context = options.max_context,
                  .max_tokens = options.max_tokens,
                  .file_bytes = file_bytes};
  r.tensors.push_back(report_of(*d.embedding));
  for (const Layer& l : d.layers) {
    for (const Linear* m : {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down}) {
      r.tensors.push_back(report_of(*m->weight));
    }
  }
  if (d.output.weight != d.embedding) r.tensors.push_back(report_of(*d.output.weight));
  return r;
}

}  // namespace pteryx::convert

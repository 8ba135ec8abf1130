// Embedding tables of 4-bit codes, two in a byte and offset by 8, or of bytes, with a scale for
// each group of a row.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/embedding_q4.h"

#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/scaled_rows.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

// Where an operator keeps its arguments; -1: it has none.
struct Row {
  std::string_view name;
  std::array<std::string_view, 1> spellings;
  std::span<const Arg> args;
  int8_t indices, group_size, low_first, zeros;
  bool bytes;
};
constexpr size_t kWeight = 0;
constexpr size_t kScales = 1;

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }
size_t at(int8_t arg) { return static_cast<size_t>(arg); }

Result<ScaledTable> table_of(const Node& n) {
  const Row& r = row(n);
  const bool low_first = r.low_first >= 0 && n.flag(at(r.low_first));
  std::optional<int64_t> group;
  if (r.group_size >= 0) {
    PTERYX_ASSIGN(group, n.integer(at(r.group_size)));
  }
  return scaled_table(n, {.weight = kWeight, .scales = kScales, .bytes = r.bytes}, group,
                      low_first);
}

bool has_zeros(const Node& n) { return row(n).zeros >= 0 && n.has(at(row(n).zeros)); }

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const ScaledTable t, table_of(n));
  const Tensor indices = n.in(at(row(n).indices));
  if (indices.rank() >= kMaxRank) return n.unsupported("a result of rank 9");
  if (t.vocabulary == 0 && indices.numel() > 0) {
    return n.fail(Code::kInvalidArgument, "weight has no rows to pick");
  }
  if (has_zeros(n)) {
    const Tensor zeros = n.in(at(row(n).zeros));
    if (zeros.numel() != n.in(kScales).numel()) {
      return n.expect(at(row(n).zeros), "shape", n.in(kScales).dims, zeros.dims);
    }
  }
  Dims y = indices.dims;
  y.push_back(t.width);
  return s.set(y);
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const ScaledTable t, table_of(n));
  const Row& r = row(n);
  const Tensor indices = n.in(at(r.indices));
  const Tensor y = n.out();
  const shaders::EmbeddingQ4Params params{.count = u32(indices.numel()),
                                          .width = u32(t.width),
                                          .vocabulary = u32(t.vocabulary),
                                          .row_bytes = u32(t.row_bytes),
                                          .group = u32(t.group),
                                          .scale_row = u32(t.scale_row),
                                          .fault = p.fault()};
  Options options = place_options(n, at(r.indices));
  options.set("bytes", r.bytes ? 1 : 0)
      .set("low_first", t.low_first ? 1 : 0)
      .set("scale_order", t.order_name())
      .set("has_zeros", has_zeros(n) ? 1 : 0);
  std::vector<Bind> bind = {
      {"weight", n.in(kWeight)}, {"scales", n.in(kScales)}, {"indices", indices}};
  if (has_zeros(n)) bind.push_back({"zeros", n.in(at(r.zeros))});
  bind.push_back({"y", y});
  return p.dispatch(n, {.shader = &shaders::embedding_q4,
                        .options = std::move(options),
                        .variant = r.bytes ? "bytes" : "",
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const ScaledTable t, table_of(n));
  const Row& r = row(n);
  const HostTensor weight = h.host(n.in(kWeight).id);
  const HostTensor scales = h.host(n.in(kScales).id);
  const HostTensor indices = h.host(n.in(at(r.indices)).id);
  const HostTensor zeros = has_zeros(n) ? h.host(n.in(at(r.zeros)).id) : scales;
  const HostTensor y = h.host(n.out_id());
  for (int64_t i = 0; i < indices.numel(); ++i) {
    PTERYX_ASSIGN(const int64_t token,
                  checked_index(n, {at(r.indices)}, i, indices.integer(i), t.vocabulary));
    for (int64_t e = 0; e < t.width; ++e) {
      double v = 0;
      if (r.bytes) {
        v = weight.number(token * t.row_bytes + e);
      } else {
        const int64_t byte = weight.integer(token * t.row_bytes + e / 2);
        v = static_cast<double>(((e % 2 == 0) == t.low_first ? byte : byte >> 4) & 15) - 8;
      }
      const int64_t s = t.scale_at(token, e);
      if (has_zeros(n)) v -= zeros.number(s);
      y.put(i * t.width + e, v * scales.number(s));
    }
  }
  return {};
}

Result<bool> fast(const Node& n, const Host& h, CpuContext& c) {
  PTERYX_ASSIGN(const ScaledTable t, table_of(n));
  const Row& r = row(n);
  if (!can_read_rows(t, r.bytes, n.in(kWeight).dtype)) return false;
  const ScaledRows rows{.table = t,
                        .bytes = r.bytes,
                        .codes = h.host(n.in(kWeight).id),
                        .scales = h.host(n.in(kScales).id),
                        .zeros = has_zeros(n) ? h.host(n.in(at(r.zeros)).id) : HostTensor{}};
  return read_rows(n, h, c, {at(r.indices)}, t.vocabulary,
                   [&](int64_t token, float* to) { read_row(rows, token, to); });
}

constexpr DTypes kBytes = only(DType::kU8) | only(DType::kI8);
constexpr Arg kScalesArg{.name = "scales", .types = kFloats, .min_rank = 1, .max_rank = 2};
constexpr Arg kGroupwise[] = {in("weight", only(DType::kU8), 2, 2),
                              in("scales", kFloats, 1, 3),
                              number("group_size"),
                              row_in("indices", 0),
                              number("is_linear_weight"),
                              out("y", kFloats)};
constexpr Arg kNibbles[] = {in("weight", only(DType::kU8), 2, 2),
                            kScalesArg,
                            optional_in("zero_points"),
                            any("quant_min"),
                            any("quant_max"),
                            row_in("indices", 0),
                            out("y", kFloats)};
constexpr Arg kNibblesTyped[] = {in("weight", only(DType::kU8), 2, 2),
                                 kScalesArg,
                                 optional_in("zero_points"),
                                 any("quant_min"),
                                 any("quant_max"),
                                 row_in("indices", 0),
                                 any("dtype"),
                                 out("y", kFloats)};
constexpr Arg kByteCodes[] = {
    in("weight", kBytes, 2, 2), kScalesArg,           optional_in("zero_points"), any("quant_min"),
    any("quant_max"),           row_in("indices", 0), out("y", kFloats)};
constexpr Arg kByteCodesTyped[] = {in("weight", kBytes, 2, 2),
                                   kScalesArg,
                                   optional_in("zero_points"),
                                   any("quant_min"),
                                   any("quant_max"),
                                   row_in("indices", 0),
                                   any("dtype"),
                                   out("y", kFloats)};

constexpr Row kRows[] = {
    {"et_vk.embedding_q4gsw.default", {""}, kGroupwise, 3, 2, 4, -1, false},
    {"quantized_decomposed.embedding_4bit.default",
     {"quantized_decomposed::embedding_4bit.out"},
     kNibbles,
     5,
     -1,
     -1,
     2,
     false},
    {"quantized_decomposed.embedding_4bit.dtype",
     {"quantized_decomposed::embedding_4bit.dtype_out"},
     kNibblesTyped,
     5,
     -1,
     -1,
     2,
     false},
    {"quantized_decomposed.embedding_byte.default",
     {"quantized_decomposed::embedding_byte.out"},
     kByteCodes,
     5,
     -1,
     -1,
     2,
     true},
    {"quantized_decomposed.embedding_byte.dtype",
     {"quantized_decomposed::embedding_byte.dtype_out"},
     kByteCodesTyped,
     5,
     -1,
     -1,
     2,
     true},
};

}  // namespace

void add_embedding_q4(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .spellings = r.spellings,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan,
                     .cpu = cpu,
                     .fast = fast,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

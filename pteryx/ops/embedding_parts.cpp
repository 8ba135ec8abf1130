// Embedding tables that are too large for one binding: parts of their rows, one behind the other.
// What a pass makes of the other embeddings; see fuse/split_rows.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/embedding_parts.h"

#include <cstring>

#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/scaled_rows.h"
#include "pteryx/ops/shaders/embedding_parts.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kTables, kScales, kZeros, kCodes, kGroup, kByGroup, kIndices };

struct Part {
  Tensor table;
  std::optional<Tensor> scales;
  std::optional<Tensor> zeros;
  int64_t first = 0;

  int64_t rows() const { return table.dims[0]; }
};
struct Parts {
  std::vector<Part> parts;
  TableCodes codes = TableCodes::kNone;
  int64_t vocabulary = 0;
  int64_t width = 0;
  int64_t group = 1;
  bool by_group = false;  // scales are [groups, rows], not [rows, groups]

  size_t index_of(int64_t token) const {
    size_t k = 0;
    while (token >= parts[k].first + parts[k].rows()) ++k;
    return k;
  }
  const Part& of(int64_t token) const { return parts[index_of(token)]; }
  ScaledTable table(const Part& p) const {
    return {.vocabulary = p.rows(),
            .width = width,
            .row_bytes = p.table.dims[1],
            .group = group,
            .order = by_group ? ScaledTable::Order::kGroups : ScaledTable::Order::kRows,
            .scale_row = by_group ? p.rows() : width / group,
            .low_first = codes == TableCodes::kLowFirst};
  }
};

Result<Tensor> member(const Node& n, size_t list, size_t i, const Dims& expected) {
  const auto t = n.list_item(list, i);
  if (!t) return n.malformed(list, "member", "a tensor", "None");
  if (t->dims != expected) return n.expect(list, "shape", expected, t->dims);
  return *t;
}

Status read_codes(const Node& n, Parts& p) {
  PTERYX_ASSIGN(const int64_t codes, n.integer(kCodes));
  if (codes < 0 || codes > static_cast<int64_t>(TableCodes::kHighFirst))
    return n.malformed(kCodes, "value", "0 to 3", std::to_string(codes));
  p.codes = static_cast<TableCodes>(codes);
  const bool coded = p.codes != TableCodes::kNone;
  const size_t scales = n.list_size(kScales);
  const size_t zeros = n.list_size(kZeros);
  const size_t wanted = coded ? n.list_size(kTables) : 0;
  if (scales != wanted)
    return n.malformed(kScales, "length", std::to_string(wanted), std::to_string(scales));
  if (zeros != 0 && zeros != wanted)
    return n.malformed(kZeros, "length", std::to_string(wanted), std::to_string(zeros));
  if (!coded) return {};
  PTERYX_ASSIGN(p.group, n.integer(kGroup));
  p.by_group = n.flag(kByGroup);
  return {};
}

Result<Parts> parts_of(const Node& n) {
  Parts p;
  if (n.list_size(kTables) == 0) return n.malformed(kTables, "length", "1 or more", "0");
  PTERYX_TRY(read_codes(n, p));
  for (size_t i = 0; i < n.list_size(kTables); ++i) {
    const auto table = n.list_item(kTables, i);
    if (!table || table->rank() != 2)
      return n.malformed(kTables, "member", "a tensor of rank 2", table ? "another" : "None");
    Part part{.table = *table, .scales = {}, .zeros = {}, .first = p.vocabulary};
    if (i == 0) {
      const bool nibbles = p.codes == TableCodes::kLowFirst || p.codes == TableCodes::kHighFirst;
      p.width = part.table.dims[1] * (nibbles ? 2 : 1);
      if (p.width == 0 || p.group <= 0 || p.width % p.group != 0) {
        return n.mismatch(kGroup, "value", fmt::format("one that divides a row of {}", p.width),
                          std::to_string(p.group));
      }
    }
    const Tensor& first = i == 0 ? part.table : p.parts[0].table;
    if (part.table.dims[1] != first.dims[1] || part.table.dtype != first.dtype)
      return n.expect(kTables, "shape", {part.rows(), first.dims[1]}, part.table.dims);
    if (p.codes != TableCodes::kNone) {
      const int64_t groups = p.width / p.group;
      const Dims dims = p.by_group ? Dims{groups, part.rows()} : Dims{part.rows(), groups};
      PTERYX_ASSIGN(part.scales, member(n, kScales, i, dims));
      if (n.list_size(kZeros) > 0) {
        PTERYX_ASSIGN(part.zeros, member(n, kZeros, i, dims));
      }
    }
    p.vocabulary += part.rows();
    p.parts.push_back(part);
  }
  return p;
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Parts p, parts_of(n));
  const Tensor indices = n.in(kIndices);
  if (indices.rank() >= kMaxRank) return n.unsupported("a result of rank 9");
  if (p.vocabulary == 0 && indices.numel() > 0)
    return n.fail(Code::kInvalidArgument, "tables have no rows to pick");
  Dims y = indices.dims;
  y.push_back(p.width);
  return s.set(y);
}

// Elements as they are go from one type to the same.
bool gpu(const Node& n) {
  const auto codes = n.integer(kCodes);
  const auto table = n.list_size(kTables) > 0 ? n.list_item(kTables, 0) : std::nullopt;
  const bool raw = codes.ok() && *codes == static_cast<int64_t>(TableCodes::kNone);
  return !raw || (table && table->dtype == n.out().dtype);
}

std::string_view codes_name(TableCodes codes) {
  switch (codes) {
    case TableCodes::kNone: return "none";
    case TableCodes::kBytes: return "bytes";
    case TableCodes::kLowFirst: return "low_first";
    case TableCodes::kHighFirst: return "high_first";
  }
  return "";
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Parts all, parts_of(n));
  const Tensor indices = n.in(kIndices);
  const Tensor y = n.out();
  for (const Part& part : all.parts) {
    const int64_t scale_row = part.scales ? part.scales->dims[1] : 0;
    const shaders::EmbeddingPartsParams params{.count = u32(indices.numel()),
                                               .width = u32(all.width),
                                               .vocabulary = u32(all.vocabulary),
                                               .first = u32(part.first),
                                               .rows = u32(part.rows()),
                                               .row = u32(part.table.dims[1]),
                                               .group = u32(all.group),
                                               .scale_row = u32(scale_row),
                                               .fault = p.fault()};
    std::vector<Bind> bind = {{"table", part.table}, {"indices", indices}};
    if (part.scales) bind.push_back({"scales", *part.scales});
    if (part.zeros) bind.push_back({"zeros", *part.zeros});
    bind.push_back({"y", y});
    Options options = place_options(n, kIndices);
    options.set("codes", std::string(codes_name(all.codes)))
        .set("by_group", all.by_group ? 1 : 0)
        .set("has_zeros", part.zeros ? 1 : 0);
    PTERYX_TRY(p.dispatch(n, {.shader = &shaders::embedding_parts,
                              .options = std::move(options),
                              .bind = std::move(bind),
                              .params = bytes_of(params),
                              .grid = per_element(words(y.numel(), y.dtype), p.caps())}));
  }
  return {};
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Parts all, parts_of(n));
  const HostTensor indices = h.host(n.in(kIndices).id);
  const HostTensor y = h.host(n.out_id());
  for (int64_t i = 0; i < indices.numel(); ++i) {
    PTERYX_ASSIGN(const int64_t token,
                  checked_index(n, {kIndices}, i, indices.integer(i), all.vocabulary));
    const Part& part = all.of(token);
    const int64_t row = token - part.first;
    const HostTensor table = h.host(part.table.id);
    for (int64_t e = 0; e < all.width; ++e) {
      if (all.codes == TableCodes::kNone) {
        y.copy(i * all.width + e, table, row * all.width + e);
        continue;
      }
      double v = 0;
      if (all.codes == TableCodes::kBytes) {
        v = table.number(row * all.width + e);
      } else {
        const int64_t byte = table.integer(row * (all.width / 2) + e / 2);
        const bool low = (e % 2 == 0) == (all.codes == TableCodes::kLowFirst);
        v = static_cast<double>((low ? byte : byte >> 4) & 15) - 8;
      }
      const int64_t g = e / all.group;
      const int64_t s = all.by_group ? g * part.rows() + row : row * (all.width / all.group) + g;
      if (part.zeros) v -= h.host(part.zeros->id).number(s);
      y.put(i * all.width + e, v * h.host(part.scales->id).number(s));
    }
  }
  return {};
}

// Of each part: looked up before threads are at work.
std::vector<ScaledRows> find_rows(const Parts& all, const Host& h) {
  std::vector<ScaledRows> rows;
  rows.reserve(all.parts.size());
  for (const Part& part : all.parts) {
    rows.push_back({.table = all.table(part),
                    .bytes = all.codes == TableCodes::kBytes,
                    .codes = h.host(part.table.id),
                    .scales = part.scales ? h.host(part.scales->id) : HostTensor{},
                    .zeros = part.zeros ? h.host(part.zeros->id) : HostTensor{}});
  }
  return rows;
}

// Elements as they are.
Result<bool> copy_rows(const Node& n, const Host& h, const Parts& all, CpuContext& c) {
  if (all.parts[0].table.dtype != n.out().dtype || n.out().numel() == 0) return false;
  const HostTensor indices = h.host(n.in(kIndices).id);
  auto* const places = c.memory.take_array<int64_t>(size(indices.numel()));
  if (c.dry_run()) return true;
  PTERYX_TRY(read_places(n, {kIndices}, indices, all.vocabulary, places));
  std::byte* const y = h.host(n.out_id()).data;
  const size_t bytes = size(all.width) * size_bytes(n.out().dtype);
  const std::vector<ScaledRows> rows = find_rows(all, h);
  for_parts(c, size(indices.numel()), kPartElements / size(all.width),
            [&](size_t begin, size_t end) {
              for (size_t i = begin; i < end; ++i) {
                const size_t k = all.index_of(places[i]);
                const int64_t row = places[i] - all.parts[k].first;
                std::memcpy(y + i * bytes, rows[k].codes.data + size(row) * bytes, bytes);
              }
            });
  return true;
}

Result<bool> fast(const Node& n, const Host& h, CpuContext& c) {
  PTERYX_ASSIGN(const Parts all, parts_of(n));
  if (all.codes == TableCodes::kNone) return copy_rows(n, h, all, c);
  const bool bytes = all.codes == TableCodes::kBytes;
  const Part& first = all.parts[0];
  if (!can_read_rows(all.table(first), bytes, first.table.dtype)) return false;
  const std::vector<ScaledRows> rows = find_rows(all, h);
  return read_rows(n, h, c, {kIndices}, all.vocabulary, [&](int64_t token, float* to) {
    const size_t k = all.index_of(token);
    read_row(rows[k], token - all.parts[k].first, to);
  });
}

constexpr Arg kArgs[] = {
    list_in("tables"),    list_in("scales", kFloats), list_in("zero_points"),     number("codes"),
    number("group_size"), number("scales_by_group"),  row_in("indices", kTables), out("y"),
};

}  // namespace

void add_embedding_parts(std::vector<OpDef>& table) {
  table.push_back({.name = "pteryx.embedding_parts",
                   .args = kArgs,
                   .shape = shape,
                   .plan = plan,
                   .gpu = gpu,
                   .cpu = cpu,
                   .fast = fast});
}

}  // namespace pteryx::ops

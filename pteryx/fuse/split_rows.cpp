// Weights of more bytes than a shader can bind: embedding tables and linear layers are cut into
// ranges of rows, each a constant of its own. A range of rows is a range of bytes of the file, so
// nothing is copied. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/fuse/constants.h"
#include "pteryx/fuse/passes.h"
#include "pteryx/fuse/uses.h"
#include "pteryx/ops/embedding_parts.h"

namespace pteryx::fuse {

using ops::TableCodes;
using namespace graph;  // NOLINT(google-build-using-namespace): the graph is what passes are about
namespace {

constexpr std::string_view kCat = "aten.cat.default";
constexpr std::string_view kSlice = "aten.slice_copy.Tensor";
constexpr std::string_view kParts = "pteryx.embedding_parts";

// Where an operator keeps what follows the rows of its weight; -1: it has none.
struct Linear {
  std::string_view op;
  size_t args;  // with the result
  int8_t weight;
  bool columns = false;  // weight is [K, N], not [N, K]
  int8_t scales = -1;
  bool groups = false;  // scales are [groups, N or more], not one for each row
  int8_t add = -1;      // goes with the columns of y where it has as many
};
constexpr Linear kLinears[] = {
    {.op = "aten.linear.default", .args = 4, .weight = 1, .add = 2},
    {.op = "aten.mm.default", .args = 3, .weight = 1, .columns = true},
    {.op = "aten.addmm.default", .args = 6, .weight = 2, .columns = true, .add = 0},
    {.op = "et_vk.linear_q4gsw.default",
     .args = 6,
     .weight = 1,
     .scales = 2,
     .groups = true,
     .add = 4},
    {.op = "et_vk.linear_qcs4w.default", .args = 4, .weight = 1, .scales = 2},
    {.op = "aten._weight_int8pack_mm.default", .args = 4, .weight = 1, .scales = 2},
    {.op = "et_vk.linear_q8ta_q8csw.default", .args = 8, .weight = 3, .scales = 5, .add = 6},
    {.op = "et_vk.linear_dq8ca_q4gsw.default",
     .args = 9,
     .weight = 3,
     .scales = 5,
     .groups = true,
     .add = 7},
};

struct Embedding {
  std::string_view op;
  size_t args;
  int8_t indices;
  TableCodes codes;
  int8_t zeros = -1;
  int8_t group = -1;
  int8_t low_first = -1;
};
constexpr size_t kTable = 0;
constexpr size_t kTableScales = 1;
constexpr Embedding kEmbeddings[] = {
    {.op = "aten.embedding.default", .args = 6, .indices = 1, .codes = TableCodes::kNone},
    {.op = "et_vk.embedding_q4gsw.default",
     .args = 6,
     .indices = 3,
     .codes = TableCodes::kHighFirst,
     .group = 2,
     .low_first = 4},
    {.op = "quantized_decomposed.embedding_4bit.default",
     .args = 7,
     .indices = 5,
     .codes = TableCodes::kHighFirst,
     .zeros = 2},
    {.op = "quantized_decomposed.embedding_4bit.dtype",
     .args = 8,
     .indices = 5,
     .codes = TableCodes::kHighFirst,
     .zeros = 2},
    {.op = "quantized_decomposed.embedding_byte.default",
     .args = 7,
     .indices = 5,
     .codes = TableCodes::kBytes,
     .zeros = 2},
    {.op = "quantized_decomposed.embedding_byte.dtype",
     .args = 8,
     .indices = 5,
     .codes = TableCodes::kBytes,
     .zeros = 2},
};

template <typename Row>
const Row* row_of(const Node& n, std::span<const Row> rows) {
  for (const Row& r : rows) {
    if (is_call(n, r.op) && n.args.size() == r.args) return &r;
  }
  return nullptr;
}
size_t at(int8_t arg) { return static_cast<size_t>(arg); }

struct Range {
  int64_t first = 0;
  int64_t count = 0;
};

class Splitter {
 public:
  Splitter(Graph& g, const OpLookup& ops, uint64_t most_bytes)
      : g_(g), ops_(ops), most_(most_bytes / 16 * 16) {}

  std::vector<SplitWeight> split() {
    std::vector<Node> old = std::move(g_.nodes);
    std::vector<uint32_t> moved(old.size() + 1);  // where each node is now
    for (size_t i = 0; i < old.size(); ++i) {
      moved[i] = static_cast<uint32_t>(nodes_.size());
      if (!split_linear(old[i]) && !split_embedding(old[i])) nodes_.push_back(std::move(old[i]));
    }
    moved[old.size()] = static_cast<uint32_t>(nodes_.size());
    for (Node& n : nodes_) {
      if (n.kind == Node::Kind::kJumpFalse) n.target = moved[n.target];
    }
    g_.nodes = std::move(nodes_);
    return std::move(splits_);
  }

 private:
  ValueId number(int64_t v) { return g_.add(v, std::to_string(v)); }
  void emit(const Node& like, std::string_view op, std::vector<ValueId> args) {
    Node n = like;
    n.op = ops_.find(op);
    n.spelling = n.op->name;
    n.args = std::move(args);
    nodes_.push_back(std::move(n));
  }

  // A constant as the GPU holds it.
  const Tensor* constant(ValueId id) const {
    const Tensor* t = g_.tensor(id);
    return t != nullptr && t->is_constant() && is_held_by_gpu(t->dtype) ? t : nullptr;
  }
  bool is_none(ValueId id) const { return std::holds_alternative<Null>(g_[id]); }

  // The rows of each part. Whoever shares a weight cuts it at the same rows, so that the parts are
  // shared as well: nothing but bytes of a row counts, those of its weights as a kernel may pad
  // them, or of its scales where these are more. Empty: as it is, it fits or cannot be cut.
  std::vector<Range> ranges(int64_t rows, uint64_t weight_row, uint64_t scales_row) const {
    if (weight_row == 0) return {};  // however many of them
    const uint64_t row = std::max(padded_row(weight_row), scales_row);
    const auto most = static_cast<int64_t>(most_ / row);
    if (rows <= most || most == 0) return {};
    int64_t unit = 64;  // what kernels like to have whole
    while (unit > most) unit /= 2;
    const int64_t parts = (rows + most - 1) / most;
    const int64_t even = ((rows + parts - 1) / parts + unit - 1) / unit * unit;
    const int64_t step = even <= most ? even : most / unit * unit;
    std::vector<Range> all;
    for (int64_t first = 0; first < rows; first += step)
      all.push_back({first, std::min(step, rows - first)});
    return all;
  }

  // The part of a constant, made once. Whether it can be was asked before.
  ValueId part(ValueId whole, const PartOf& what) {
    std::optional<Tensor> t = constant_part(*g_.tensor(whole), what);
    for (const ValueId known : parts_) {
      const Tensor& other = *g_.tensor(known);
      const bool same = other.data == t->data && other.max == t->max && other.dtype == t->dtype &&
                        other.dim_order == t->dim_order && other.stored == t->stored;
      if (same) return known;
    }
    parts_.push_back(g_.add(std::move(*t), fmt::format("{}, rows {} to {}", g_.label(whole),
                                                       what.first, what.first + what.count - 1)));
    return parts_.back();
  }
  bool can_cut(ValueId whole, PartOf what) const {
    what.count = 1;
    return constant_part(*g_.tensor(whole), what).has_value();
  }
  // Of a tensor of which only the order of its elements counts.
  PartOf flat(ValueId id, const Range& r) const {
    return {.first = r.first, .count = r.count, .as = Dims{numel(g_.tensor(id)->max)}};
  }

  // Two values may be of the same bytes.
  void note(ValueId weight, size_t parts) {
    const Tensor& t = *g_.tensor(weight);
    const bool known = std::ranges::any_of(
        splits_, [&](const SplitWeight& s) { return g_.tensor(s.weight)->data == t.data; });
    if (!known) splits_.push_back({weight, parts});
  }

  // ---- linear layers

  static uint64_t bytes_of(const Tensor& t) {
    return static_cast<uint64_t>(numel(t.max)) * size_bytes(t.dtype);
  }

  bool split_linear(const Node& n) {
    const Linear* l = row_of<Linear>(n, kLinears);
    if (l == nullptr || ops_.find(kCat) == nullptr) return false;
    const Tensor* w = constant(n.args[at(l->weight)]);
    const Tensor* y = g_.tensor(n.args.back());
    if (w == nullptr || y == nullptr || w->max.rank() != 2 || y->max.empty()) return false;
    const size_t dim = l->columns ? 1 : 0;
    const int64_t rows = w->max[dim];
    if (rows == 0 || y->max.back() != rows) return false;
    const Tensor* scales = nullptr;
    if (l->scales >= 0) {
      scales = constant(n.args[at(l->scales)]);
      if (scales == nullptr || numel(scales->max) < rows) return false;
      if (l->groups && (scales->max.rank() != 2 || scales->max[1] < rows)) return false;
    }
    const uint64_t scales_row =
        scales == nullptr ? 0 : (l->groups ? u64(scales->max[0]) : 1) * size_bytes(scales->dtype);
    const auto cuts = ranges(rows, bytes_of(*w) / u64(rows), scales_row);
    if (cuts.empty() || !can_cut(n.args[at(l->weight)], {.dim = dim})) return false;
    if (scales != nullptr &&
        !can_cut(n.args[at(l->scales)], scales_part(*l, n.args[at(l->scales)], {})))
      return false;
    if (l->add >= 0 && !can_cut_added(n.args[at(l->add)], rows, *l)) return false;
    note(n.args[at(l->weight)], cuts.size());
    ValueList pieces;
    for (const Range& r : cuts) {
      Node piece = n;
      const ValueId weight = n.args[at(l->weight)];
      piece.args[at(l->weight)] = part(weight, {.dim = dim, .first = r.first, .count = r.count});
      if (l->scales >= 0) {
        ValueId& s = piece.args[at(l->scales)];
        s = part(s, scales_part(*l, s, r));
      }
      if (l->add >= 0) piece.args[at(l->add)] = added(n, piece.args[at(l->add)], r, rows, *l);
      Tensor result{.dtype = y_of(n).dtype, .max = y_of(n).max};
      result.max[result.max.rank() - 1] = r.count;
      piece.args.back() =
          g_.add(std::move(result), fmt::format("{}, columns {} to {}", g_.label(n.args.back()),
                                                r.first, r.first + r.count - 1));
      pieces.items.push_back(piece.args.back());
      nodes_.push_back(std::move(piece));
    }
    const ValueId list = g_.add(std::move(pieces), "parts");
    emit(n, kCat, {list, number(-1), n.args.back()});
    return true;
  }
  PartOf scales_part(const Linear& l, ValueId scales, const Range& r) const {
    return l.groups ? PartOf{.dim = 1, .first = r.first, .count = r.count} : flat(scales, r);
  }
  const Tensor& y_of(const Node& n) const { return *g_.tensor(n.args.back()); }
  static uint64_t u64(int64_t v) { return static_cast<uint64_t>(v); }

  // A bias that a quantised layer takes may be longer than y has columns.
  bool can_cut_added(ValueId id, int64_t rows, const Linear& l) const {
    if (is_none(id)) return true;
    const Tensor* t = g_.tensor(id);
    if (t == nullptr) return false;
    if (l.scales >= 0)
      return constant(id) != nullptr && numel(t->max) >= rows && can_cut(id, flat(id, {}));
    const int64_t last = t->max.empty() ? 1 : t->max.back();
    if (last == 1 || rows == 1) return true;
    if (last != rows) return false;
    return constant(id) != nullptr ? can_cut(id, {.dim = t->max.rank() - 1})
                                   : ops_.find(kSlice) != nullptr;
  }

  ValueId added(const Node& n, ValueId id, const Range& r, int64_t rows, const Linear& l) {
    if (is_none(id)) return id;
    const Tensor& t = *g_.tensor(id);
    if (l.scales >= 0) return part(id, flat(id, r));
    if (t.max.empty() || t.max.back() == 1 || rows == 1) return id;
    const size_t last = t.max.rank() - 1;
    if (constant(id) != nullptr) return part(id, {.dim = last, .first = r.first, .count = r.count});
    Tensor cut{.dtype = t.dtype, .max = t.max};
    cut.max[last] = r.count;
    const ValueId y = g_.add(std::move(cut), fmt::format("{}, columns {} to {}", g_.label(id),
                                                         r.first, r.first + r.count - 1));
    emit(n, kSlice, {id, number(-1), number(r.first), number(r.first + r.count), number(1), y});
    return y;
  }

  // ---- embedding tables

  bool split_embedding(const Node& n) {
    const Embedding* e = row_of<Embedding>(n, kEmbeddings);
    if (e == nullptr || ops_.find(kParts) == nullptr) return false;
    const Tensor* w = constant(n.args[kTable]);
    const Tensor* y = g_.tensor(n.args.back());
    if (w == nullptr || y == nullptr || w->max.rank() != 2 || w->max[0] == 0 || w->max[1] == 0)
      return false;
    const int64_t rows = w->max[0];
    ScaleForm form;
    if (e->codes == TableCodes::kNone) {
      if (w->dtype != y->dtype) return false;  // the CPU's
    } else if (!read_scales(n, *e, *w, form)) {
      return false;
    }
    const auto cuts = ranges(rows, bytes_of(*w) / u64(rows), form.row_bytes);
    if (cuts.empty() || !can_cut(n.args[kTable], {})) return false;
    note(n.args[kTable], cuts.size());
    ValueList weights, scales, zeros;
    for (const Range& r : cuts) {
      weights.items.push_back(part(n.args[kTable], {.first = r.first, .count = r.count}));
      if (e->codes == TableCodes::kNone) continue;
      const PartOf scale{.dim = form.by_group ? size_t{1} : 0,
                         .first = r.first,
                         .count = r.count,
                         .as = form.dims};
      scales.items.push_back(part(n.args[kTableScales], scale));
      if (form.zeros) zeros.items.push_back(part(n.args[at(e->zeros)], scale));
    }
    const ValueId codes = number(static_cast<int64_t>(codes_of(n, *e)));
    const ValueId group = number(form.group);
    const ValueId by_group = number(form.by_group ? 1 : 0);
    const ValueId ws = g_.add(std::move(weights), "tables");
    const ValueId ss = g_.add(std::move(scales), "scales");
    const ValueId zs = g_.add(std::move(zeros), "zero points");
    emit(n, kParts, {ws, ss, zs, codes, group, by_group, n.args[at(e->indices)], n.args.back()});
    return true;
  }

  struct ScaleForm {
    Dims dims;              // [rows, groups], or [groups, rows or more]
    bool by_group = false;  // the latter
    int64_t group = 0;      // elements of a row that share a scale
    bool zeros = false;
    uint64_t row_bytes = 0;
  };

  // As the operators tell the two layouts apart. False where they would refuse what is there.
  bool read_scales(const Node& n, const Embedding& e, const Tensor& w, ScaleForm& form) const {
    const Tensor* s = constant(n.args[kTableScales]);
    if (s == nullptr || s->max.empty() || s->max.rank() > 2) return false;
    if (e.low_first >= 0 && std::holds_alternative<LiveScalar>(g_[n.args[at(e.low_first)]]))
      return false;
    const int64_t rows = w.max[0];
    const int64_t width = w.max[1] * (e.codes == TableCodes::kBytes ? 1 : 2);
    int64_t groups = s->max.rank() == 2 ? s->max[1] : 1;
    if (e.group >= 0) {
      const auto* group = std::get_if<int64_t>(&g_[n.args[at(e.group)]]);
      if (group == nullptr || *group <= 0 || width % *group != 0) return false;
      groups = width / *group;
    }
    if (groups == 0 || width % groups != 0) return false;
    form.group = width / groups;
    const bool vector = s->max.rank() == 1 && s->max[0] == rows && groups == 1;
    form.by_group = !vector && s->max != Dims{rows, groups};
    if (form.by_group && (s->max.rank() != 2 || s->max[0] != groups || s->max[1] < rows))
      return false;
    form.dims = form.by_group ? s->max : Dims{rows, groups};
    form.row_bytes = u64(groups) * size_bytes(s->dtype);
    form.zeros = e.zeros >= 0 && !is_none(n.args[at(e.zeros)]);
    const PartOf any{.dim = form.by_group ? size_t{1} : 0, .as = form.dims};
    if (!can_cut(n.args[kTableScales], any)) return false;
    if (!form.zeros) return true;
    const Tensor* z = constant(n.args[at(e.zeros)]);
    return z != nullptr && numel(z->max) == numel(s->max) && can_cut(n.args[at(e.zeros)], any);
  }

  TableCodes codes_of(const Node& n, const Embedding& e) const {
    if (e.low_first < 0) return e.codes;
    const Value& v = g_[n.args[at(e.low_first)]];
    const auto* i = std::get_if<int64_t>(&v);
    const auto* d = std::get_if<double>(&v);
    const auto* b = std::get_if<bool>(&v);
    const bool low = (i != nullptr && *i != 0) || (d != nullptr && *d != 0) || (b != nullptr && *b);
    return low ? TableCodes::kLowFirst : e.codes;
  }

  Graph& g_;
  const OpLookup& ops_;
  uint64_t most_;
  std::vector<Node> nodes_;
  std::vector<ValueId> parts_;
  std::vector<SplitWeight> splits_;
};

}  // namespace

std::vector<SplitWeight> split_rows(Graph& g, const OpLookup& ops, uint64_t most_bytes) {
  return Splitter(g, ops, most_bytes).split();
}

}  // namespace pteryx::fuse

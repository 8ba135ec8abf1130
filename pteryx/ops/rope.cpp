// Rotary position embeddings: pairs of a row turned by the angle of its position. Adjacent pairs
// (Llama), halves (Hugging Face), and one tensor with its own (cos, sin) pairs.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/rope.h"

#include "pteryx/ops/op.h"
#include "pteryx/ops/shaders/rope.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace rope {
namespace {

struct Row {
  std::string_view name;
  Layout layout;
  std::span<const Arg> args;
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

// Which dims of x and of the tables are what.
struct TableDims {
  bool heads_first = false;
  size_t position = 0;                           // dim of the tables
  std::optional<size_t> batch = {}, heads = {};  // likewise
};

// The exporter's patterns multiply x by the tables after giving these dims that broadcast: adjacent
// pairs [position, heads, width], halves [position, 1, width] or [batch, 1, position, width]. With
// four dims the tables are laid out as x is.
TableDims table_dims(const Node& n) {
  const Tensor table = n.in(kCos);
  if (table.rank() == 2) return {};
  const TableDims like_x{.position = 1, .batch = 0, .heads = 2};
  if (row(n).layout == Layout::kHalves) {
    if (table.rank() == 3) return {.heads_first = true, .position = 1, .batch = 0};
    const bool heads_first = table.dim(1) == 1 && (table.dim(2) != 1 || n.in(kXq).dim(-3) != 1);
    return heads_first ? TableDims{.heads_first = true, .position = 2, .batch = 0, .heads = 1}
                       : like_x;
  }
  if (table.rank() == 4) return like_x;
  // [1, position, width] is no pattern's. The dims of the file tell it from [position, heads,
  // width], so that a call means the same at every live size.
  const Dims file = n.max_dims(table.id);
  const Dims x = n.max_dims(n.in(kXq).id);
  const bool one_for_all =
      file[0] == 1 && file[1] != 1 && (x[x.rank() - 3] > 1 || file[1] != x[x.rank() - 2]);
  return one_for_all ? TableDims{.position = 1, .batch = 0} : TableDims{.position = 0, .heads = 1};
}

// The call that cut a tensor out of a longer one, also where it was viewed in between.
std::optional<Node> slice_of(const Node& n, ValueId id) {
  const graph::Graph& g = n.graph();
  for (size_t i = g.nodes.size(); i-- > 0;) {
    const graph::Node& node = g.nodes[i];
    if (node.op == nullptr || node.args.back() != id) continue;
    const OpDef& def = op(*node.op);
    if (def.name == "aten.slice_copy.Tensor") return Node(g, node, def, n.live());
    if (def.op_class != OpClass::kView) return std::nullopt;
    id = node.args.front();
  }
  return std::nullopt;
}

Status negative(const Node& n, std::string_view what, int64_t start) {
  return n.fail(Code::kInvalidArgument, fmt::format("{}: expected 0 or more, got {}", what, start));
}

// Tables are too short for x. Where they are slices, what is left of one that begins past the end
// says nothing: the message tells its beginning and the table's rows.
Status too_short(const Node& n, const Rope& r, int64_t start) {
  if (const auto slice = slice_of(n, n.in(kCos).id)) {
    const Tensor table = slice->in(0);
    const auto dim = slice->dim(1, table.rank());
    const auto from = slice->integer_or(2, 0);
    if (dim.ok() && *dim + 1 < table.rank() && from.ok()) {  // not of columns
      if (*from < 0) return negative(n, "position", *from);
      const int64_t rows = table.dims[*dim];
      if (*from > rows - r.length) {
        return n.fail(Code::kInvalidArgument,
                      fmt::format("position {} + {} rows exceed the {} rows of freqs_cos ({})",
                                  *from, r.length, rows, n.graph().label(table.id)));
      }
    }
  }
  return n.fail(Code::kInvalidArgument,
                fmt::format("start_pos {} + {} positions exceed the {} rows of freqs_cos", start,
                            r.length, r.positions));
}

// The table row of position 0, after checking that the tables reach as far as x.
Result<int64_t> read_start(const Node& n, const Rope& r) {
  if (row(n).layout == Layout::kInterleaved) return 0;
  PTERYX_ASSIGN(const int64_t start,
                row(n).layout == Layout::kHalves ? n.integer(kStart) : Result<int64_t>(0));
  if (start < 0) return negative(n, "start_pos", start);
  if (start > r.positions - r.length) return too_short(n, r, start);
  return start;
}

// Where the rows of the tables are.
Status read_tables(const Node& n, int64_t batch, Rope& r) {
  const Tensor cos = n.in(kCos);
  const TableDims at = table_dims(n);
  r.positions = cos.dims[at.position];
  for (size_t d = at.position + 1; d + 1 < cos.rank(); ++d) r.position_stride *= cos.dims[d];
  Dims expected = cos.dims;
  if (at.batch && cos.dims[*at.batch] != 1) {
    expected[*at.batch] = batch;
    r.batch_stride = 1;
    for (size_t d = *at.batch + 1; d + 1 < cos.rank(); ++d) r.batch_stride *= cos.dims[d];
  }
  if (at.heads && cos.dims[*at.heads] != 1) {
    expected[*at.heads] = r.heads_q == r.heads_k ? r.heads_q : 1;
    r.head_stride = *at.heads < at.position ? r.positions : 1;
  }
  PTERYX_TRY(n.expect(kCos, "shape", expected, cos.dims));
  return n.expect(kSin, "shape", cos.dims, n.in(kSin).dims);
}

Result<Rope> read_pair(const Node& n) {
  const Tensor q = n.in(kXq);
  const Tensor k = n.in(kXk);
  const bool halves = row(n).layout == Layout::kHalves;
  if (!n.has_out(0) || !n.has_out(1))
    return n.fail(Code::kInvalidProgram, "y: expected two result tensors");
  Rope r{.layout = row(n).layout, .size = q.dim(-1), .heads_first = table_dims(n).heads_first};
  const size_t heads = q.rank() - (r.heads_first ? 3 : 2);
  r.length = q.dim(r.heads_first ? -2 : -3);
  r.heads_q = q.dims[heads];
  Dims expected = q.dims;
  if (k.rank() == q.rank()) expected[heads] = r.heads_k = k.dims[heads];
  PTERYX_TRY(n.expect(kXk, "shape", expected, k.dims));
  const int64_t columns = n.in(kCos).dim(-1);
  r.rotary = halves ? columns : r.size;
  if (r.rotary % 2 != 0 || r.rotary > r.size) {
    return n.mismatch(halves ? kCos : kXq, "width",
                      halves ? fmt::format("an even number up to {}", r.size) : "an even number",
                      std::to_string(r.rotary));
  }
  if (!halves && 2 * columns != r.size) {
    return n.mismatch(kCos, "width", std::to_string(r.size / 2), std::to_string(columns));
  }
  PTERYX_TRY(read_tables(n, q.rank() == 4 ? q.dim(0) : 1, r));
  return r;
}

Result<Rope> read_interleaved(const Node& n) {
  const Tensor x = n.in(kX);
  Rope r{
      .layout = Layout::kInterleaved, .length = x.dim(-2), .size = x.dim(-1), .rotary = x.dim(-1)};
  if (r.size % 2 != 0) return n.mismatch(kX, "width", "an even number", std::to_string(r.size));
  if (n.in(kFreqs).numel() != r.length * r.size) {
    return n.mismatch(kFreqs, "elements", std::to_string(r.length * r.size),
                      std::to_string(n.in(kFreqs).numel()));
  }
  return r;
}

Result<Rope> read(const Node& n) {
  return row(n).layout == Layout::kInterleaved ? read_interleaved(n) : read_pair(n);
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN([[maybe_unused]] const Rope r, describe(n));
  PTERYX_TRY(s.set(0, n.in(0).dims));
  return row(n).layout == Layout::kInterleaved ? Status() : s.set(1, n.in(kXk).dims);
}

std::string layout_name(Layout l) {
  switch (l) {
    case Layout::kAdjacent: return "adjacent";
    case Layout::kHalves: return "halves";
    case Layout::kInterleaved: return "interleaved";
  }
  return "";
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Rope r, read(n));
  const bool single = row(n).layout == Layout::kInterleaved;
  const Tensor yq = n.out(0);
  const Tensor yk = single ? Tensor{} : n.out(1);
  const LiveInt start = row(n).layout == Layout::kHalves ? n.live(kStart) : LiveInt{};
  const int64_t words_q = words(yq.numel(), yq.dtype);
  const int64_t all = words_q + (single ? 0 : words(yk.numel(), yk.dtype));
  const shaders::RopeParams params{.n_q = u32(yq.numel()),
                                   .n_k = single ? 0 : u32(yk.numel()),
                                   .words_q = u32(words_q),
                                   .words = u32(all),
                                   .heads_q = u32(r.heads_q),
                                   .heads_k = u32(r.heads_k),
                                   .length = u32(r.length),
                                   .size = u32(r.size),
                                   .rotary = u32(r.rotary),
                                   .start = start.word,
                                   .heads_first = r.heads_first ? 1U : 0U,
                                   .batch_stride = u32(r.batch_stride),
                                   .position_stride = u32(r.position_stride),
                                   .head_stride = u32(r.head_stride)};
  std::vector<Bind> bind;
  if (single) {
    bind = {{"xq", n.in(kX)}, {"freqs", n.in(kFreqs)}, {"yq", yq}};
  } else {
    bind = {{"xq", n.in(kXq)},      {"xk", n.in(kXk)}, {"cos_of", n.in(kCos)},
            {"sin_of", n.in(kSin)}, {"yq", yq},        {"yk", yk}};
  }
  return p.dispatch(n, {.shader = &shaders::rope,
                        .options = {{"layout", layout_name(row(n).layout)}},
                        .variant = row(n).name,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .live = {start},
                        .grid = per_element(all, p.caps())});
}

// Element d of a row: its partner, and the (cos, signed sin) it turns by.
struct Turn {
  int64_t partner = 0;
  double c = 1;
  double n = 0;
};

Turn turn_of(const Node& n, const Host& h, const Rope& r, int64_t at_row, int64_t d) {
  if (row(n).layout == Layout::kHalves) {
    const int64_t half = r.rotary / 2;
    const int64_t at = at_row * r.rotary + d;
    const double sin = h.host(n.in(kSin).id).number(at);
    return {d < half ? d + half : d - half, h.host(n.in(kCos).id).number(at),
            d < half ? -sin : sin};
  }
  const int64_t pair = at_row * (r.size / 2) + d / 2;
  const bool interleaved = row(n).layout == Layout::kInterleaved;
  const double cos =
      interleaved ? h.host(n.in(kFreqs).id).number(2 * pair) : h.host(n.in(kCos).id).number(pair);
  const double sin = interleaved ? h.host(n.in(kFreqs).id).number(2 * pair + 1)
                                 : h.host(n.in(kSin).id).number(pair);
  return {d ^ 1, cos, d % 2 == 0 ? -sin : sin};
}

void rotate(const Node& n, const Host& h, const Rope& r, int64_t heads, const HostTensor& x,
            const HostTensor& y) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t d = i % r.size;
    if (d >= r.rotary) {
      y.copy(i, x, i);
      continue;
    }
    const Turn t = turn_of(n, h, r, r.table_row(heads, i / r.size), d);
    y.put(i, x.number(i) * t.c + x.number(i - d + t.partner) * t.n);
  }
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Rope r, describe(n));
  rotate(n, h, r, r.heads_q, h.host(n.in(0).id), h.host(n.out_id(0)));
  if (row(n).layout != Layout::kInterleaved)
    rotate(n, h, r, r.heads_k, h.host(n.in(kXk).id), h.host(n.out_id(1)));
  return {};
}

constexpr Arg kAdjacentArgs[] = {in("xq", kFloats, 3, 4), in("xk", kFloats, 3, 4),
                                 in("freqs_cos", kFloats, 2, 4), in("freqs_sin", kFloats, 2, 4),
                                 out_list("y", 2, kFloats)};
constexpr Arg kHalvesArgs[] = {
    in("xq", kFloats, 3, 4),        in("xk", kFloats, 3, 4), in("freqs_cos", kFloats, 2, 4),
    in("freqs_sin", kFloats, 2, 4), number("start_pos"),     out_list("y", 2, kFloats)};
constexpr Arg kInterleavedArgs[] = {in("x", kFloats, 2), in("freqs", kFloats), out("y", kFloats)};

constexpr Row kRows[] = {
    {"et_vk.apply_rotary_emb.default", Layout::kAdjacent, kAdjacentArgs},
    {"et_vk.apply_rotary_emb_hf.default", Layout::kHalves, kHalvesArgs},
    {"et_vk.apply_rotary_emb_interleaved.default", Layout::kInterleaved, kInterleavedArgs},
};

}  // namespace

int64_t Rope::table_row(int64_t heads, int64_t i) const {
  const int64_t position = (heads_first ? i : i / heads) % length;
  const int64_t head = (heads_first ? i / length : i) % heads;
  return i / (length * heads) * batch_stride + (start + position) * position_stride +
         head * head_stride;
}

Result<Rope> describe(const Node& n) {
  PTERYX_ASSIGN(Rope r, read(n));
  PTERYX_ASSIGN(r.start, read_start(n, r));
  return r;
}

}  // namespace rope

void add_rope(std::vector<OpDef>& table) {
  using namespace rope;
  for (const Row& r : kRows) {
    table.push_back({.name = r.name,
                     .args = r.args,
                     .shape = shape,
                     .plan = plan,
                     .cpu = cpu,
                     .fast = fast,
                     .row = &r});
  }
}

}  // namespace pteryx::ops

// Rotary position embeddings: pairs of a row turned by the angle of its position. Adjacent pairs
// (Llama), halves (Hugging Face), and one tensor with its own (cos, sin) pairs.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/rope.h"

#include "pteryx/ops/op.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kXq, kXk, kCos, kSin, kStart };
enum InterleavedPosition { kX, kFreqs };

enum class Layout : uint8_t { kAdjacent, kHalves, kInterleaved };

struct Row {
  std::string_view name;
  Layout layout;
  std::span<const Arg> args;
  std::string_view partner;  // WGSL over d: the other element of the pair
  std::string_view turn;     // WGSL over s and d: (cos, sin with the sign of d's place in the pair)
};

const Row& row(const Node& n) { return *static_cast<const Row*>(n.def().row); }

// A call as numbers; x is [batch, length, heads, size].
struct Rope {
  int64_t length = 0;
  int64_t size = 0;
  int64_t rotary = 0;  // leading elements of a row that turn
  int64_t heads_q = 1;
  int64_t heads_k = 1;
};

// The table row of position 0, after checking that the tables reach as far as x.
Result<int64_t> read_start(const Node& n, const Rope& r) {
  if (row(n).layout == Layout::kInterleaved) return 0;
  PTERYX_ASSIGN(const int64_t start,
                row(n).layout == Layout::kHalves ? n.integer(kStart) : Result<int64_t>(0));
  const int64_t rows = n.in(kCos).dim(0);
  if (start < 0) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("start_pos: expected 0 or more, got {}", start));
  }
  if (start > rows - r.length) {
    return n.fail(Code::kInvalidArgument,
                  fmt::format("start_pos {} + {} positions exceed the {} rows of freqs_cos", start,
                              r.length, rows));
  }
  return start;
}

Result<Rope> read_pair(const Node& n) {
  const Tensor q = n.in(kXq);
  const Tensor k = n.in(kXk);
  const bool halves = row(n).layout == Layout::kHalves;
  if (!n.has_out(0) || !n.has_out(1))
    return n.fail(Code::kInvalidProgram, "y: expected two result tensors");
  Rope r{.length = q.dim(1), .size = q.dim(3), .heads_q = q.dim(2), .heads_k = k.dim(2)};
  PTERYX_TRY(n.expect(kXk, "shape", {q.dim(0), r.length, r.heads_k, r.size}, k.dims));
  const int64_t columns = n.in(kCos).dim(1);
  r.rotary = halves ? columns : r.size;
  if (r.rotary % 2 != 0 || r.rotary > r.size) {
    return n.mismatch(halves ? kCos : kXq, "width",
                      halves ? fmt::format("an even number up to {}", r.size) : "an even number",
                      std::to_string(r.rotary));
  }
  if (!halves && 2 * columns != r.size) {
    return n.mismatch(kCos, "width", std::to_string(r.size / 2), std::to_string(columns));
  }
  PTERYX_TRY(n.expect(kSin, "shape", n.in(kCos).dims, n.in(kSin).dims));
  return r;
}

Result<Rope> read_interleaved(const Node& n) {
  const Tensor x = n.in(kX);
  Rope r{.length = x.dim(-2), .size = x.dim(-1), .rotary = x.dim(-1)};
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
  PTERYX_ASSIGN(const Rope r, read(n));
  PTERYX_ASSIGN([[maybe_unused]] const int64_t start, read_start(n, r));
  PTERYX_TRY(s.set(0, n.in(0).dims));
  return row(n).layout == Layout::kInterleaved ? Status() : s.set(1, n.in(kXk).dims);
}

// One word of a result; @ is q or k.
std::string rotate_function(char which) {
  std::string text = R"(
fn rotate_@(w: u32) {
  var word = 0u;
  for (var lane = 0u; lane < y@_lanes; lane++) {
    let i = w * y@_lanes + lane;
    if (i >= params.n_@) { break; }
    let d = i % params.size;
    var v = load_x@(i);
    if (d < params.rotary) {
      let t = turn(i / params.size / params.heads_@ % params.length, d);
      v = v * t.x + load_x@(i - d + partner(d)) * t.y;
    }
    word |= encode_y@(lane, v);
  }
  y@[w] = word;
}
)";
  for (char& c : text) {
    if (c == '@') c = which;
  }
  return text;
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
                                   .start = start.word};
  std::string prelude = fmt::format(
      "fn partner(d: u32) -> u32 {{ return {}; }}\n"
      "fn turn(s: u32, d: u32) -> vec2<f32> {{ {} }}\n",
      row(n).partner, row(n).turn);
  prelude += rotate_function('q');
  prelude += single ? "fn rotate_k(w: u32) {}\n" : rotate_function('k');
  std::vector<Bind> bind;
  if (single) {
    bind = {{"xq", n.in(kX)}, {"freqs", n.in(kFreqs)}, {"yq", yq, Access::kWords}};
  } else {
    bind = {{"xq", n.in(kXq)},      {"xk", n.in(kXk)},          {"cos_of", n.in(kCos)},
            {"sin_of", n.in(kSin)}, {"yq", yq, Access::kWords}, {"yk", yk, Access::kWords}};
  }
  return p.dispatch(n, {.shader = &shaders::rope,
                        .variant = row(n).name,
                        .prelude = prelude,
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

Turn turn_of(const Node& n, const Host& h, const Rope& r, int64_t s, int64_t d) {
  if (row(n).layout == Layout::kHalves) {
    const int64_t half = r.rotary / 2;
    const int64_t at = s * r.rotary + d;
    const double sin = h.host(n.in(kSin).id).number(at);
    return {d < half ? d + half : d - half, h.host(n.in(kCos).id).number(at),
            d < half ? -sin : sin};
  }
  const int64_t pair = s * (r.size / 2) + d / 2;
  const bool interleaved = row(n).layout == Layout::kInterleaved;
  const double cos =
      interleaved ? h.host(n.in(kFreqs).id).number(2 * pair) : h.host(n.in(kCos).id).number(pair);
  const double sin = interleaved ? h.host(n.in(kFreqs).id).number(2 * pair + 1)
                                 : h.host(n.in(kSin).id).number(pair);
  return {d ^ 1, cos, d % 2 == 0 ? -sin : sin};
}

void rotate(const Node& n, const Host& h, const Rope& r, int64_t start, int64_t heads,
            const HostTensor& x, const HostTensor& y) {
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t d = i % r.size;
    if (d >= r.rotary) {
      y.copy(i, x, i);
      continue;
    }
    const Turn t = turn_of(n, h, r, start + i / r.size / heads % r.length, d);
    y.put(i, x.number(i) * t.c + x.number(i - d + t.partner) * t.n);
  }
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Rope r, read(n));
  PTERYX_ASSIGN(const int64_t start, read_start(n, r));
  rotate(n, h, r, start, r.heads_q, h.host(n.in(0).id), h.host(n.out_id(0)));
  if (row(n).layout != Layout::kInterleaved)
    rotate(n, h, r, start, r.heads_k, h.host(n.in(kXk).id), h.host(n.out_id(1)));
  return {};
}

constexpr Arg kAdjacentArgs[] = {in("xq", kFloats, 4, 4), in("xk", kFloats, 4, 4),
                                 in("freqs_cos", kFloats, 2, 2), in("freqs_sin", kFloats, 2, 2),
                                 out_list("y", 2)};
constexpr Arg kHalvesArgs[] = {
    in("xq", kFloats, 4, 4),        in("xk", kFloats, 4, 4), in("freqs_cos", kFloats, 2, 2),
    in("freqs_sin", kFloats, 2, 2), number("start_pos"),     out_list("y", 2)};
constexpr Arg kInterleavedArgs[] = {in("x", kFloats, 2), in("freqs", kFloats), out("y", kFloats)};

constexpr Row kRows[] = {
    {"et_vk.apply_rotary_emb.default", Layout::kAdjacent, kAdjacentArgs, "d ^ 1u",
     "let at = s * (params.size / 2u) + d / 2u; let n = load_sin_of(at);"
     " return vec2<f32>(load_cos_of(at), select(n, -n, (d & 1u) == 0u));"},
    {"et_vk.apply_rotary_emb_hf.default", Layout::kHalves, kHalvesArgs,
     "select(d - params.rotary / 2u, d + params.rotary / 2u, d < params.rotary / 2u)",
     "let at = (u32(live(params.start)) + s) * params.rotary + d; let n = load_sin_of(at);"
     " return vec2<f32>(load_cos_of(at), select(n, -n, d < params.rotary / 2u));"},
    {"et_vk.apply_rotary_emb_interleaved.default", Layout::kInterleaved, kInterleavedArgs, "d ^ 1u",
     "let at = s * params.size + (d & 0xfffffffeu); let n = load_freqs(at + 1u);"
     " return vec2<f32>(load_freqs(at), select(n, -n, (d & 1u) == 0u));"},
};

}  // namespace

void add_rope(std::vector<OpDef>& table) {
  for (const Row& r : kRows) {
    table.push_back(
        {.name = r.name, .args = r.args, .shape = shape, .plan = plan, .cpu = cpu, .row = &r});
  }
}

}  // namespace pteryx::ops

// Random calls of rotary embeddings and of embedding tables, with references in double.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "pteryx/ops/testing/draw.h"

namespace pteryx::ops::testing {
namespace {

// ---- rotary embeddings

// x is rows of `size` elements for [batch, length, heads] or, with heads first, [batch, heads,
// length]. where(pair) gives both places of a pair and both columns, row(batch, position, head)
// the row of the tables.
struct Pair {
  int64_t a, b, column_a, column_b;
};
TestTensor turned(const TestTensor& x, bool heads_first, const TestTensor& cos,
                  const TestTensor& sin, int64_t pairs, const auto& where, const auto& row_of) {
  TestTensor y = x;
  const auto back = [&](size_t i) { return x.dims[x.dims.rank() - i]; };
  const int64_t size = back(1);
  const int64_t heads = heads_first ? back(3) : back(2);
  const int64_t length = heads_first ? back(2) : back(3);
  const int64_t width = cos.dims[cos.dims.rank() - 1];
  for (int64_t row = 0; row < numel(x.dims) / size; ++row) {
    const int64_t position = heads_first ? row % length : row / heads % length;
    const int64_t head = heads_first ? row / length % heads : row % heads;
    const int64_t table = row_of(row / (heads * length), position, head) * width;
    for (int64_t i = 0; i < pairs; ++i) {
      const Pair p = where(i);
      const double a = x.data[at(row * size + p.a)];
      const double b = x.data[at(row * size + p.b)];
      y.data[at(row * size + p.a)] =
          a * cos.data[at(table + p.column_a)] - b * sin.data[at(table + p.column_a)];
      y.data[at(row * size + p.b)] =
          b * cos.data[at(table + p.column_b)] + a * sin.data[at(table + p.column_b)];
    }
  }
  return y;
}

// The dims of x and of the tables, and which row of the tables turns what.
struct RopeLayout {
  bool heads_first = false;
  Dims q, k, table;
  bool of_the_file = false;  // told apart by the dims in the file
  int64_t batch_rows = 0, position_rows = 1, head_rows = 0;
};
RopeLayout draw_rope_layout(bool halves, int64_t rows, int64_t positions, int64_t size,
                            int64_t width, Draw& d) {
  const int64_t batch = d.chance(0.3) ? 2 : 1;
  const int64_t heads = d.integer(1, 9);
  const bool per_head = !halves && d.chance(0.2);
  const int64_t other = per_head ? heads : d.integer(1, 9);
  const int64_t tables = d.chance(0.3) ? batch : 1;
  RopeLayout l;
  // Heads come first where the tables have a dim for the batch.
  l.heads_first = halves && d.chance(0.4);
  const bool batched = batch > 1 || d.chance(0.7);
  if (l.heads_first) {
    const bool unit = d.chance(0.3) && positions > 1;
    l.table = unit ? Dims{tables, 1, positions, width} : Dims{tables, positions, width};
  } else if (per_head) {
    l.table = Dims{positions, heads, width};
  } else if (d.chance(0.3) && (!halves || positions > 1)) {
    l.table = Dims{tables, positions, 1, width};
  } else if (!halves && d.chance(0.3)) {
    l.table = Dims{positions, 1, width};
  } else if (!halves && positions > 1 && d.chance(0.3)) {
    l.table = Dims{1, positions, width};
    l.of_the_file = true;
  } else {
    l.table = Dims{positions, width};
  }
  l.batch_rows = !per_head && l.table.rank() > 2 && l.table[0] == tables && tables > 1 &&
                         (l.heads_first || l.table.rank() == 4)
                     ? positions
                     : 0;
  l.position_rows = per_head ? heads : 1;
  l.head_rows = per_head ? 1 : 0;
  const auto dims = [&](int64_t n) {
    const Dims x = l.heads_first ? Dims{n, rows, size} : Dims{rows, n, size};
    return batched ? Dims{batch, x[0], x[1], x[2]} : x;
  };
  l.q = dims(heads);
  l.k = dims(other);
  return l;
}

Drawn draw_rope(std::string_view op, Draw& d) {
  const DType t = d.chance(0.25) ? DType::kF16 : DType::kF32;
  const Tolerance tol = t == DType::kF16 ? Tolerance{1e-3, 2e-3} : Tolerance{1e-6, 1e-6};
  Case call{std::string(op)};
  if (is(op, "interleaved")) {
    const int64_t n = d.integer(1, 20);
    const int64_t width = 2 * d.integer(1, 20);
    const TestTensor x = d.values(t, {d.integer(1, 3), n, width});
    const TestTensor freqs =
        d.values(t, d.chance(0.5) ? Dims{n, width / 2, 2} : Dims{n * width}, -1, 1);
    TestTensor y = x;
    for (int64_t p = 0; p < numel(x.dims) / 2; ++p) {
      const double c = freqs.data[at(2 * p % (n * width))];
      const double s = freqs.data[at(2 * p % (n * width) + 1)];
      y.data[at(2 * p)] = x.data[at(2 * p)] * c - x.data[at(2 * p + 1)] * s;
      y.data[at(2 * p + 1)] = x.data[at(2 * p)] * s + x.data[at(2 * p + 1)] * c;
    }
    return {call.in(x).in(freqs).out(t, x.dims), tol, std::vector<TestTensor>{y}};
  }
  const bool halves = is(op, "_hf");
  const int64_t rows = d.chance(0.4) ? 1 : d.integer(1, 30);
  const int64_t size = 2 * d.integer(1, 40);
  const int64_t turn = halves && d.chance(0.4) ? 2 * d.integer(1, size / 2) : size;
  const int64_t start = halves && d.chance(0.7) ? d.integer(0, 50) : 0;
  const int64_t positions = start + rows + (d.chance(0.5) ? 0 : d.integer(0, 9));
  const RopeLayout l = draw_rope_layout(halves, rows, positions, size, halves ? turn : size / 2, d);
  const TestTensor q = d.values(t, l.q);
  const TestTensor k = d.values(t, l.k);
  const TestTensor cos = d.values(t, l.table, -1, 1);
  const TestTensor sin = d.values(t, l.table, -1, 1);
  call.in(q).in(k);
  l.of_the_file ? call.constant(cos).constant(sin) : call.in(cos).in(sin);
  if (halves) d.chance(0.5) ? call.integer(start) : call.live(start);
  const auto reference = [&](const TestTensor& x) {
    const int64_t half = turn / 2;
    return turned(
        x, l.heads_first, cos, sin, half,
        [&](int64_t i) {
          return halves ? Pair{i, i + half, i, i + half} : Pair{2 * i, 2 * i + 1, i, i};
        },
        [&](int64_t b, int64_t p, int64_t h) {
          return b * l.batch_rows + (start + p) * l.position_rows + h * l.head_rows;
        });
  };
  return {call.outs({q, k}), tol, std::vector<TestTensor>{reference(q), reference(k)}};
}

// ---- embedding tables of codes

Drawn draw_embedding(std::string_view op, Draw& d) {
  const DType t = d.chance(0.25) ? DType::kF16 : DType::kF32;
  const bool nibbles = !is(op, "byte");
  const bool group_op = is(op, "q4gsw");
  const int64_t group = 2 * d.integer(1, 24);
  const int64_t groups = d.integer(1, 5);
  const int64_t width = group * groups;
  const int64_t vocabulary = d.integer(2, 60);
  const TestTensor codes =
      nibbles ? d.ids(DType::kI8, {vocabulary, width}, -8, 7)
              : d.ids(d.chance(0.5) ? DType::kI8 : DType::kU8, {vocabulary, width}, 0, 127);
  const bool low_first = group_op && d.chance(0.5);
  const TestTensor packed = make(DType::kU8, {vocabulary, width / 2}, [&](int64_t i) {
    const double even = codes.data[at(2 * i)] + 8;
    const double odd = codes.data[at(2 * i + 1)] + 8;
    return low_first ? odd * 16 + even : even * 16 + odd;
  });
  const TestTensor scales = d.values(t, {vocabulary, groups}, 0.01, 0.1);
  const bool has_zeros = !group_op && d.chance(0.4);
  const TestTensor zeros = d.values(t, {vocabulary, groups}, -3, 3);
  const TestTensor ids =
      d.ids(d.chance(0.5) ? DType::kI32 : DType::kI64, d.full_dims(0, 3, 60), 0, vocabulary - 1);
  Dims dims = ids.dims;
  dims.push_back(width);
  TestTensor y{t, dims, {}};
  for (const double id : ids.data) {
    for (int64_t e = 0; e < width; ++e) {
      const size_t s = at(static_cast<int64_t>(id) * groups + e / group);
      const double code = codes.data[at(static_cast<int64_t>(id) * width + e)];
      y.data.push_back((code - (has_zeros ? zeros.data[s] : 0)) * scales.data[s]);
    }
  }
  Case call{std::string(op)};
  call.in(nibbles ? packed : codes);
  call.in(scales);
  if (group_op) {
    call.integer(group).in(ids);
    d.chance(0.5) ? call.flag(low_first) : call.integer(low_first ? 1 : 0);
  } else {
    has_zeros ? call.in(zeros) : call.none();
    call.integer(nibbles ? -8 : -128).integer(nibbles ? 7 : 127).in(ids);
    if (is(op, ".dtype")) call.none();
  }
  const Tolerance f32 = has_zeros ? Tolerance{1e-6, 1e-5} : Tolerance{0, 1e-6};
  return {call.out(t, dims), t == DType::kF16 ? Tolerance{has_zeros ? 1e-3 : 0, 2e-3} : f32,
          std::vector<TestTensor>{y}};
}

}  // namespace

std::vector<Generator> embedding_generators() {
  return {
      {"Rope",
       {"et_vk.apply_rotary_emb.default", "et_vk.apply_rotary_emb_hf.default",
        "et_vk.apply_rotary_emb_interleaved.default"},
       draw_rope},
      {"EmbeddingQ4",
       {"et_vk.embedding_q4gsw.default", "quantized_decomposed.embedding_4bit.default",
        "quantized_decomposed.embedding_4bit.dtype", "quantized_decomposed.embedding_byte.default",
        "quantized_decomposed.embedding_byte.dtype"},
       draw_embedding},
  };
}

}  // namespace pteryx::ops::testing

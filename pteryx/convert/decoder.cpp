// Operators, their order and their arguments are those of ExecuTorch's exporter. What it has no
// form for, and this adds: 8-bit layers (as its quantiser of single layers writes them), an 8-bit
// embedding inside the delegate, f16 weights and caches with f32 activations, and the minimums of
// 4-bit layers, as operators that it knows.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/decoder.h"

#include <map>
#include <utility>

#include "pteryx/convert/rope_table.h"

namespace pteryx::convert {
namespace {

constexpr const char* kInputTree =
    R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [{"type": )"
    R"("builtins.tuple", "context": "null", "children_spec": [{"type": null, "context": null, )"
    R"("children_spec": []}, {"type": "builtins.dict", "context": "[\"input_pos\"]", )"
    R"("children_spec": [{"type": null, "context": null, "children_spec": []}]}]}, {"type": )"
    R"("builtins.dict", "context": "[]", "children_spec": []}]}])";

class Builder {
 public:
  Builder(const Decoder& d, const DecoderOptions& o)
      : d_(d), s_(d.shape), o_(o), tokens_bound_(o.max_tokens) {}

  ProgramSpec build() {
    prepare();
    ValueId h = embed();
    prepare_rope();
    for (const Layer& layer : d_.layers) h = ffn(layer, attention(layer, h));
    const ValueId last = f32({1, s_.hidden});
    g().call("aten.select_copy.int", {h, g().integer(1), g().integer(-1), last});
    const ValueId logits = linear(d_.output, norm(last, d_.norm, {1, s_.hidden}), {1});
    g().add_output(logits);
    finish();
    return std::move(p_);
  }

 private:
  VkGraph& g() { return p_.graph; }
  ValueId f32(const Dims& dims) { return g().tensor(DType::kF32, dims); }
  size_t blob(Blob b) {
    p_.blobs.push_back(std::move(b));
    return p_.blobs.size() - 1;
  }
  ValueId vector(const std::vector<float>& values) {
    return g().constant(blob(floats(values)), DType::kF32, {static_cast<int64_t>(values.size())});
  }
  Dims sequence(int64_t width) const { return {1, tokens_bound_, width}; }

  // Where the rope tables and the rows of live sequences come from.
  void prepare() {
    const RopeTable t = rope_table(s_, o_.max_context);
    const Dims dims = {o_.max_context, t.width};
    cos_ = g().prepack(blob(floats(t.cos)), DType::kF32, dims);
    sin_ = g().prepack(blob(floats(t.sin)), DType::kF32, dims);
    tokens_ = g().tensor(DType::kI32, {1, tokens_bound_});
    position_ = g().tensor(DType::kI32, {1});
    g().add_input(tokens_);
    g().add_input(position_);
    length_ = g().symint();
    g().call("sym_size.int", {tokens_, g().integer(1), length_});
  }

  ValueId embed() {
    EncodedMatrix& m = *d_.embedding;
    const Dims table = {m.matrix().rows, m.weight_cols()};
    const ValueId y = f32(sequence(s_.hidden));
    const ValueId no = g().flag(false);
    switch (m.encoding().target) {
      case Target::kF32:
        g().call("aten.embedding.default", {g().constant(weight(m), DType::kF32, table), tokens_,
                                            g().integer(-1), no, no, y});
        break;
      case Target::kF16: {
        const ValueId half = g().tensor(DType::kF16, sequence(s_.hidden));
        g().call("aten.embedding.default", {g().constant(weight(m), DType::kF16, table), tokens_,
                                            g().integer(-1), no, no, half});
        g().call("aten._to_copy.default",
                 {half, g().null(), g().null(), g().null(), g().null(), no, g().null(), y});
        break;
      }
      case Target::kQ8:
        g().call("quantized_decomposed.embedding_byte.dtype",
                 {g().constant(weight(m), DType::kI8, table),
                  g().constant(row_scales(m), DType::kF32, {m.matrix().rows}), g().null(),
                  g().integer(-128), g().integer(127), tokens_, g().null(), y});
        break;
      case Target::kQ4:
        g().call("et_vk.embedding_q4gsw.default",
                 {g().constant(weight(m), DType::kU8, table),
                  g().constant(row_scales(m), DType::kF32, {m.matrix().rows, m.groups()}),
                  g().integer(m.encoding().group), tokens_, g().flag(true), y});
        break;
    }
    return y;
  }

  // The rows of this call; the operator for halves takes whole tables and the position.
  void prepare_rope() {
    start_ = g().symint();
    g().call("et_vk.select_as_symint.default",
             {position_, g().integer(0), g().integer(-1), start_});
    if (s_.rope == RopeLayout::kHalves) return;
    const ValueId end = g().symint();
    g().call("add", {start_, length_, end});
    for (ValueId* table : {&cos_, &sin_}) {
      const ValueId rows = f32({tokens_bound_, s_.head_size / 2});
      g().call("aten.slice_copy.Tensor",
               {*table, g().integer(0), start_, end, g().integer(1), rows});
      *table = rows;
    }
  }

  ValueId norm(ValueId x, const std::vector<float>& weight_values, const Dims& dims) {
    const ValueId y = f32(dims);
    // The exporter's constant went through f32.
    const double eps = static_cast<double>(static_cast<float>(s_.norm_eps));
    g().call("et_vk.rms_norm.default", {x, vector(weight_values), g().number(eps), y});
    return y;
  }

  ValueId view(ValueId x, std::vector<ValueId> size, const Dims& dims) {
    const ValueId y = f32(dims);
    g().call("aten.view_copy.default", {x, g().list(std::move(size)), y});
    return y;
  }

  // Blobs of a matrix; a tied one is there once.
  size_t weight(EncodedMatrix& m) {
    return once(&m, 0, [&] { return m.weight(); });
  }
  size_t row_scales(EncodedMatrix& m) {
    return once(&m, 1, [&] { return m.row_scales(); });
  }
  size_t linear_scales(EncodedMatrix& m) {
    return once(&m, 2, [&] { return m.linear_scales(); });
  }
  size_t minimums(EncodedMatrix& m) {
    return once(&m, 3, [&] { return m.minimums(); });
  }
  template <typename Make>
  size_t once(const EncodedMatrix* m, int which, Make make) {
    const auto [at, fresh] = made_.try_emplace({m, which}, 0);
    if (fresh) at->second = blob(make());
    return at->second;
  }

  // The product itself: x [leading..., cols] -> [leading..., rows].
  ValueId linear(const Linear& l, ValueId x, Dims leading) {
    EncodedMatrix& m = *l.weight;
    const int64_t rows = m.matrix().rows;
    const Dims dims = {rows, m.weight_cols()};
    leading.push_back(rows);
    const ValueId y = f32(leading);
    switch (m.encoding().target) {
      case Target::kF32:
      case Target::kF16: {
        const DType type = m.encoding().target == Target::kF32 ? DType::kF32 : DType::kF16;
        g().call("aten.linear.default", {x, g().constant(weight(m), type, dims), bias(l, rows), y});
        return y;
      }
      case Target::kQ4:
        g().call("et_vk.linear_q4gsw.default",
                 {x, g().constant(weight(m), DType::kU8, dims),
                  g().constant(linear_scales(m), DType::kF32, {m.groups(), m.padded_rows()}),
                  g().integer(m.encoding().group), bias(l, m.padded_rows()), y});
        return m.encoding().minimums ? add_minimums(m, x, y, leading) : y;
      case Target::kQ8: break;
    }
    g().call("aten._weight_int8pack_mm.default",
             {x, g().constant(weight(m), DType::kI8, dims),
              g().constant(row_scales(m), DType::kF32, {rows}), y});
    if (!l.bias) return y;
    const ValueId sum = f32(leading);
    g().call("aten.add.Tensor",
             {y, g().prepack(blob(floats(*l.bias)), DType::kF32, {rows}), g().integer(1), sum});
    return sum;
  }

  // y [leading..., rows] = layer(x) + the sums of x over groups, times their minimums. Layers over
  // the same x have the same sums.
  ValueId add_minimums(EncodedMatrix& m, ValueId x, ValueId y, const Dims& dims) {
    const int64_t rows = m.matrix().rows;
    const bool one = dims.rank() == 2;  // the row of the last token
    const int64_t most = one ? 1 : tokens_bound_;
    const ValueId count = one ? g().integer(1) : length_;
    const auto [at, fresh] = group_sums_.try_emplace(x, -1);
    if (fresh) {
      const Dims grouped = {most, m.groups(), m.encoding().group};
      const ValueId groups = g().integer(m.groups());
      const ValueId split = view(x, {count, groups, g().integer(grouped[2])}, grouped);
      const ValueId sums = f32({most, m.groups(), 1});
      g().call("aten.sum.dim_IntList",
               {split, g().integers({2}), g().flag(true), g().null(), sums});
      at->second = view(sums, {count, groups}, {most, m.groups()});
    }
    ValueId product = f32({most, rows});
    g().call("aten.mm.default",
             {at->second, g().constant(minimums(m), DType::kF32, {m.groups(), rows}), product});
    if (!one) product = view(product, {g().integer(1), count, g().integer(rows)}, dims);
    const ValueId sum = f32(dims);
    g().call("aten.add.Tensor", {y, product, g().integer(1), sum});
    return sum;
  }

  ValueId bias(const Linear& l, int64_t size) {
    if (!l.bias) return g().null();
    std::vector<float> values = *l.bias;
    values.resize(static_cast<size_t>(size));
    return vector(values);
  }

  // x [1, S, ...] of `width` elements a row -> [1, S, tail...]. Quantised products take three dims;
  // the others are between views to two.
  ValueId linear3(const Linear& l, ValueId x, int64_t width, bool flat, const Dims& tail) {
    std::vector<ValueId> size = {g().integer(1), length_};
    for (const int64_t d : tail) size.push_back(g().integer(d));
    Dims dims = {1, tokens_bound_};
    for (const int64_t d : tail) dims.push_back(d);
    const Target target = l.weight->encoding().target;
    if (target == Target::kF32 || target == Target::kF16) {
      const ValueId rows = view(x, {length_, g().integer(width)}, {tokens_bound_, width});
      return view(linear(l, rows, {tokens_bound_}), size, dims);
    }
    if (!flat) x = view(x, {g().integer(1), length_, g().integer(width)}, sequence(width));
    return view(linear(l, x, {1, tokens_bound_}), size, dims);
  }

  ValueId add(ValueId a, ValueId b) {
    const ValueId y = f32(sequence(s_.hidden));
    g().call("aten.add.Tensor", {a, b, g().integer(1), y});
    return y;
  }
  ValueId mul(ValueId a, ValueId b) {
    const ValueId y = f32(sequence(s_.ffn));
    g().call("aten.mul.Tensor", {a, b, y});
    return y;
  }

  ValueId attention(const Layer& l, ValueId h) {
    const Dims q_dims = {1, tokens_bound_, s_.heads, s_.head_size};
    const Dims k_dims = {1, tokens_bound_, s_.kv_heads, s_.head_size};
    const ValueId n = norm(h, l.attention_norm, sequence(s_.hidden));
    ValueId q = linear3(l.q, n, s_.hidden, true, {s_.heads, s_.head_size});
    ValueId k = linear3(l.k, n, s_.hidden, true, {s_.kv_heads, s_.head_size});
    const ValueId v = linear3(l.v, n, s_.hidden, true, {s_.kv_heads, s_.head_size});
    if (s_.qk_norm) {
      q = norm(q, l.q_norm, q_dims);
      k = norm(k, l.k_norm, k_dims);
    }
    const ValueId turned_q = f32(q_dims);
    const ValueId turned_k = f32(k_dims);
    const ValueId turned = g().list({turned_q, turned_k});
    if (s_.rope == RopeLayout::kHalves) {
      g().call("et_vk.apply_rotary_emb_hf.default", {q, k, cos_, sin_, start_, turned});
    } else {
      g().call("et_vk.apply_rotary_emb.default", {q, k, cos_, sin_, turned});
    }
    const ValueId a = attend(turned_q, turned_k, v, q_dims);
    return add(h, linear3(l.o, a, s_.q_rows(), false, {s_.hidden}));
  }

  ValueId attend(ValueId q, ValueId k, ValueId v, const Dims& dims) {
    if (cache_position_ < 0) {
      cache_position_ = g().symint();
      g().call("et_vk.select_as_symint.default",
               {position_, g().integer(0), g().integer(0), cache_position_});
    }
    const Dims cache = {1, o_.max_context, s_.kv_heads, s_.head_size};
    if (!empty_cache_) {
      empty_cache_ = blob(zeros(static_cast<uint64_t>(numel(cache)) * size_bytes(o_.kv_type)));
    }
    const ValueId keys = g().constant(*empty_cache_, o_.kv_type, cache);
    const ValueId values = g().constant(*empty_cache_, o_.kv_type, cache);
    const ValueId y = f32(dims);
    g().call("sdpa_with_kv_cache.default",
             {q, k, v, keys, values, cache_position_, g().integer(1), g().null(), g().integer(0),
              g().flag(true), g().null(), y});
    return y;
  }

  ValueId ffn(const Layer& l, ValueId h) {
    const ValueId n = norm(h, l.ffn_norm, sequence(s_.hidden));
    const ValueId gate = linear3(l.gate, n, s_.hidden, true, {s_.ffn});
    const ValueId sigmoid = f32(sequence(s_.ffn));
    g().call("aten.sigmoid.default", {gate, sigmoid});
    const ValueId silu = mul(gate, sigmoid);
    const ValueId both = mul(silu, linear3(l.up, n, s_.hidden, true, {s_.ffn}));
    return add(h, linear3(l.down, both, s_.ffn, true, {s_.hidden}));
  }

  void finish() {
    p_.inputs = {{DType::kI64, {1, tokens_bound_}, true}, {DType::kI64, {1}, false}};
    p_.outputs = {{DType::kF32, {1, s_.vocabulary}, false}};
    p_.input_tree = kInputTree;
    p_.constants = {{"get_max_seq_len", {o_.max_tokens}},
                    {"get_max_context_len", {o_.max_context}},
                    {"get_n_layers", {s_.layers}},
                    {"get_vocab_size", {s_.vocabulary}},
                    {"use_kv_cache", {true}},
                    {"use_sdpa_with_kv_cache", {true}},
                    {"enable_dynamic_shape", {true}}};
    if (d_.bos) p_.constants.push_back({"get_bos_id", {*d_.bos}});
    if (!d_.eos.empty()) {
      p_.constants.push_back({"get_eos_ids", {d_.eos.begin(), d_.eos.end()}});
    }
  }

  const Decoder& d_;
  const ModelShape& s_;
  const DecoderOptions& o_;
  int64_t tokens_bound_;
  ProgramSpec p_;
  std::map<std::pair<const EncodedMatrix*, int>, size_t> made_;
  std::optional<size_t> empty_cache_;
  std::map<ValueId, ValueId> group_sums_;  // by x
  ValueId cos_ = -1, sin_ = -1, tokens_ = -1, position_ = -1;
  ValueId length_ = -1, start_ = -1, cache_position_ = -1;
};

}  // namespace

ProgramSpec decoder_program(const Decoder& d, const DecoderOptions& options) {
  return Builder(d, options).build();
}

}  // namespace pteryx::convert

// Bags of table rows: the sum, mean or largest elements of the rows that each bag names. Bags are
// neighbouring runs of `indices`, each beginning at its offset.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/shaders/embedding_bag.h"

#include "pteryx/ops/index_bound.h"
#include "pteryx/ops/op.h"
#include "pteryx/ops/shaders/embedding_bag_sizes.h"
#include "pteryx/ops/table.h"

namespace pteryx::ops {
namespace {

enum Position { kWeight, kIndices, kOffsets, kMode = 4, kWeights = 6, kIncludeLast, kPadding };
enum Out { kY, kOffset2Bag, kBagSize, kMaxIndices };
enum Mode : int64_t { kSum, kMean, kMax };

struct Bags {
  int64_t mode = kSum;
  int64_t padding = -1;  // a row that counts for nothing; -1: none
  int64_t bags = 0;
  int64_t indices = 0;
  int64_t offsets = 0;
  int64_t rows = 0;
  int64_t width = 0;
  // PyTorch's plain sums and means end the last bag at the last offset, where that is given, and
  // its sums say nothing of which bag an index is in; all else ends it with the indices.
  bool plain = false;
};

Result<Bags> read(const Node& n) {
  const Tensor weight = n.in(kWeight);
  Bags b{.indices = n.in(kIndices).numel(),
         .offsets = n.in(kOffsets).numel(),
         .rows = weight.dim(0),
         .width = weight.dim(1)};
  PTERYX_ASSIGN(b.mode, n.integer(kMode));
  if (b.mode < kSum || b.mode > kMax)
    return n.malformed(kMode, "value", "0, 1 or 2", std::to_string(b.mode));
  PTERYX_ASSIGN(b.padding, n.integer(kPadding));
  if (b.padding < -1 || b.padding >= b.rows)
    return n.mismatch(kPadding, "value", fmt::format("-1 to {}", b.rows - 1),
                      std::to_string(b.padding));
  if (n.has(kWeights)) {
    if (b.mode != kSum)
      return n.fail(Code::kInvalidProgram, "per_sample_weights: only sums take them");
    if (n.in(kWeights).dims != n.in(kIndices).dims)
      return n.expect(kWeights, "shape", n.in(kIndices).dims, n.in(kWeights).dims);
  }
  const bool last = n.flag(kIncludeLast);
  if (last && b.offsets == 0)
    return n.fail(Code::kInvalidArgument, "offsets: expected at least 1 with the last, got 0");
  b.bags = b.offsets - (last ? 1 : 0);
  if (b.rows == 0 && b.indices > 0 && b.bags > 0)
    return n.fail(Code::kInvalidArgument, "weight has no rows to pick");
  b.plain = b.mode != kMax && b.padding < 0 && weight.dtype != DType::kF64;
  return b;
}

Status shape(const Node& n, Shapes& s) {
  PTERYX_ASSIGN(const Bags b, read(n));
  PTERYX_TRY(s.set(kY, {b.bags, b.width}));
  PTERYX_TRY(s.set(kOffset2Bag, {b.plain && b.mode == kSum ? 0 : b.indices}));
  PTERYX_TRY(s.set(kBagSize, {b.mode == kSum ? b.offsets : b.bags}));
  return s.set(kMaxIndices, b.mode == kMax ? Dims{b.bags, b.width} : Dims{b.bags});
}

Status plan_rows(const Node& n, const Bags& b, Plan& p) {
  const Tensor y = n.out(kY);
  const bool weighted = n.has(kWeights);
  const bool which = b.mode == kMax && n.has_out(kMaxIndices);
  const shaders::EmbeddingBagParams params{.bags = u32(b.bags),
                                           .offsets = u32(b.offsets),
                                           .indices = u32(b.indices),
                                           .rows = u32(b.rows),
                                           .width = u32(b.width),
                                           .padding = static_cast<int32_t>(b.padding),
                                           .to_last_offset = b.plain ? 1U : 0U,
                                           .fault = p.fault()};
  const std::string_view mode = b.mode == kSum ? "sum" : (b.mode == kMean ? "mean" : "max");
  std::vector<Bind> bind = {
      {"weight", n.in(kWeight)}, {"indices", n.in(kIndices)}, {"offsets", n.in(kOffsets)}};
  if (weighted) bind.push_back({"weights", n.in(kWeights)});
  bind.push_back({"y", y});
  if (which) bind.push_back({"largest", n.out(kMaxIndices)});
  return p.dispatch(n, {.shader = &shaders::embedding_bag,
                        .options = {{"mode", std::string(mode)},
                                    {"weighted", weighted ? 1 : 0},
                                    {"keeps_largest", which ? 1 : 0},
                                    {"indices_arg", int64_t{kIndices}},
                                    {"offsets_arg", int64_t{kOffsets}}},
                        .variant = mode,
                        .bind = std::move(bind),
                        .params = bytes_of(params),
                        .grid = per_element(words(y.numel(), y.dtype), p.caps())});
}

// One of the results that say what was summed.
Status plan_sizes(const Node& n, const Bags& b, Out result, Plan& p) {
  const Tensor y = n.out(result);
  const shaders::EmbeddingBagSizesParams params{.n = u32(y.numel()),
                                                .bags = u32(b.bags),
                                                .indices = u32(b.indices),
                                                .padding = static_cast<int32_t>(b.padding),
                                                .fault = p.fault()};
  const std::string_view answer =
      result == kOffset2Bag ? "bag_of" : (b.mode == kSum ? "nothing" : "size_of");
  return p.dispatch(n,
                    {.shader = &shaders::embedding_bag_sizes,
                     .options = place_options(n, kOffsets).set("answer", std::string(answer)),
                     .variant = answer,
                     .bind = {{"indices", n.in(kIndices)}, {"offsets", n.in(kOffsets)}, {"y", y}},
                     .params = bytes_of(params),
                     .grid = per_element(y.numel(), p.caps())});
}

Status plan(const Node& n, Plan& p) {
  PTERYX_ASSIGN(const Bags b, read(n));
  if (n.has_out(kY)) PTERYX_TRY(plan_rows(n, b, p));
  for (const Out result : {kOffset2Bag, kBagSize, kMaxIndices}) {
    if (!n.has_out(result) || (result == kMaxIndices && b.mode == kMax)) continue;
    PTERYX_TRY(plan_sizes(n, b, result, p));
  }
  return {};
}

// Where each bag begins, and the end of the last.
Result<std::vector<int64_t>> bounds(const Node& n, const Bags& b, const HostTensor& offsets) {
  std::vector<int64_t> at(static_cast<size_t>(b.bags) + 1, b.indices);
  int64_t least = 0;
  for (int64_t i = 0; i < b.offsets; ++i) {
    PTERYX_ASSIGN(const int64_t v,
                  checked_index(n, {kOffsets}, i, offsets.integer(i), b.indices + 1));
    if (v < least || (i == 0 && v != 0)) {
      return n.fail(Code::kInvalidArgument,
                    fmt::format("offsets: {} at position {} is outside [{}, {}]", v, i, least,
                                i == 0 ? 0 : b.indices));
    }
    least = v;
    if (i < b.bags || b.plain) at[static_cast<size_t>(i)] = v;
  }
  return at;
}

// One bag of y; how many rows of it count.
int64_t fold_bag(const Node& n, const Host& h, const Bags& b, int64_t bag, int64_t begin,
                 int64_t end) {
  const HostTensor weight = h.host(n.in(kWeight).id);
  const HostTensor indices = h.host(n.in(kIndices).id);
  int64_t counted = 0;
  for (int64_t i = begin; i < end; ++i) counted += indices.integer(i) == b.padding ? 0 : 1;
  for (int64_t e = 0; e < b.width; ++e) {
    double y = 0;
    int64_t largest = -1;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = indices.integer(i);
      if (row == b.padding) continue;
      const double v = weight.number(row * b.width + e);
      if (b.mode != kMax) {
        y += n.has(kWeights) ? v * h.host(n.in(kWeights).id).number(i) : v;
      } else if (largest < 0 || v > y) {
        y = v;
        largest = row;
      }
    }
    const int64_t size = bag + 1 == b.bags ? counted + b.indices - end : counted;
    if (b.mode == kMean && size > 1) y /= static_cast<double>(size);
    if (n.has_out(kY)) h.host(n.out_id(kY)).put(bag * b.width + e, y);
    if (b.mode == kMax && n.has_out(kMaxIndices))
      h.host(n.out_id(kMaxIndices)).put_integer(bag * b.width + e, largest < 0 ? 0 : largest);
  }
  return counted;
}

Status cpu(const Node& n, const Host& h) {
  PTERYX_ASSIGN(const Bags b, read(n));
  const HostTensor indices = h.host(n.in(kIndices).id);
  for (int64_t i = 0; i < b.indices; ++i) {
    PTERYX_ASSIGN([[maybe_unused]] const int64_t row,
                  checked_index(n, {kIndices}, i, indices.integer(i), b.rows));
  }
  PTERYX_ASSIGN(const std::vector<int64_t> at, bounds(n, b, h.host(n.in(kOffsets).id)));
  const auto put = [&](Out result, int64_t i, int64_t v) {
    if (n.has_out(result)) h.host(n.out_id(result)).put_integer(i, v);
  };
  for (int64_t bag = 0; bag < b.bags; ++bag) {
    const int64_t begin = at[static_cast<size_t>(bag)];
    const int64_t end = at[static_cast<size_t>(bag) + 1];
    int64_t size = fold_bag(n, h, b, bag, begin, end);
    if (bag + 1 == b.bags) size += b.indices - end;
    const int64_t told = b.mode == kSum ? 0 : size;
    put(kBagSize, bag, told);
    if (b.mode != kMax) put(kMaxIndices, bag, told);
    if (b.plain && b.mode == kSum) continue;
    for (int64_t i = begin; i < (bag + 1 == b.bags ? b.indices : end); ++i)
      put(kOffset2Bag, i, bag);
  }
  if (b.mode == kSum && b.offsets > b.bags) put(kBagSize, b.bags, 0);
  return {};
}

constexpr Arg vector_of_indices(Arg a) {
  a.min_rank = a.max_rank = 1;
  return a;
}
constexpr Arg kRowsAndIndices = {.name = "y",
                                 .kind = ArgKind::kOutList,
                                 .types = kFloats,
                                 .min_rank = 4,
                                 .index = true,
                                 .more_types = kIndexTypes};
constexpr Arg kArgs[] = {
    in("weight", kFloats, 2, 2),
    vector_of_indices(row_in("indices", kWeight)),
    vector_of_indices(bounded_in("offsets", {.of = kIndices, .along = IndexBound::Along::kEnds})),
    any("scale_grad_by_freq"),
    number("mode"),
    any("sparse"),
    optional_in("per_sample_weights", kFloats),
    number("include_last_offset"),
    number("padding_idx"),
    kRowsAndIndices};
constexpr std::string_view kSpellings[] = {"aten::_embedding_bag_forward_only.out"};

}  // namespace

void add_embedding_bag(std::vector<OpDef>& table) {
  table.push_back({.name = "aten._embedding_bag_forward_only.default",
                   .spellings = kSpellings,
                   .args = kArgs,
                   .shape = shape,
                   .plan = plan,
                   .cpu = cpu});
}

}  // namespace pteryx::ops

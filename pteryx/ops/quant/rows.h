// The operators that are linear layers with quantised weights, or made by passes: their arguments.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "pteryx/ops/quant/qlinear.h"

namespace pteryx::ops::qlinear {

// Where an operator keeps its arguments; -1: it has none.
struct Row {
  std::string_view name;
  std::span<const Arg> args;
  Codes codes;
  int8_t weight, scales, minimums;
  int8_t group;  // none: one scale per row of weight
  int8_t bias, residual;
  int8_t factor, x_zero;       // numbers
  int8_t row_scale, row_zero;  // tensors
  int8_t norm, eps;
  int8_t gated, last;
  int8_t widths;  // of several results
  // Of a layer that makes queries, keys and values.
  int8_t cos, sin, table_start, halves, q_norm, k_norm, head_eps, k_cache, v_cache, start;
};
inline constexpr size_t kX = 0;

constexpr int8_t place(std::span<const Arg> args, std::string_view name, ArgKind kind) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name == name && args[i].kind == kind) return static_cast<int8_t>(i);
  }
  return -1;
}
constexpr Row make_row(std::string_view name, std::span<const Arg> args, Codes codes) {
  const auto tensor = [&](std::string_view arg) { return place(args, arg, ArgKind::kTensor); };
  const auto number = [&](std::string_view arg) { return place(args, arg, ArgKind::kNumber); };
  return {.name = name,
          .args = args,
          .codes = codes,
          .weight = tensor("weight"),
          .scales = tensor("scales"),
          .minimums = tensor("minimums"),
          .group = number("group_size"),
          .bias = tensor("bias"),
          .residual = tensor("residual"),
          .factor = number("in_scale"),
          .x_zero = number("in_zero_point"),
          .row_scale = tensor("in_scale"),
          .row_zero = tensor("in_zero_point"),
          .norm = tensor("norm"),
          .eps = number("eps"),
          .gated = number("gated"),
          .last = number("last"),
          .widths = place(args, "widths", ArgKind::kInts),
          .cos = tensor("freqs_cos"),
          .sin = tensor("freqs_sin"),
          .table_start = number("freqs_start"),
          .halves = number("halves"),
          .q_norm = tensor("q_norm"),
          .k_norm = tensor("k_norm"),
          .head_eps = number("head_eps"),
          .k_cache = tensor("k_cache"),
          .v_cache = tensor("v_cache"),
          .start = number("start_pos")};
}

inline constexpr DTypes kCode4 = only(DType::kU8);
inline constexpr DTypes kCode8 = only(DType::kI8);
inline constexpr Arg kGroupwise[] = {in("x", kFloats, 1),          in("weight", kCode4, 2, 2),
                                     in("scales", kFloats, 2, 3),  number("group_size"),
                                     optional_in("bias", kFloats), out("y", kFloats)};
inline constexpr Arg kChannel4[] = {in("x", kFloats, 1), in("weight", kCode4, 2, 2),
                                    in("scales", kFloats), out("y", kFloats)};
inline constexpr Arg kChannel8[] = {in("x", kFloats, 1), in("weight", kCode8, 2, 2),
                                    in("scales", kFloats), out("y", kFloats)};
inline constexpr Arg kStatic8[] = {
    in("x", kCode8, 1),           number("in_scale"), number("in_zero_point"),
    in("weight", kCode8, 2, 2),   in("weight_sums"),  in("scales", kFloats),
    optional_in("bias", kFloats), out("y", kFloats)};
inline constexpr Arg kDynamic8[] = {in("x", kFloats, 1),
                                    in("in_scale", kFloats),
                                    in("in_zero_point", kIntegers),
                                    in("weight", kCode4, 2, 2),
                                    in("weight_sums"),
                                    in("scales", kFloats, 2, 3),
                                    number("group_size"),
                                    optional_in("bias", kFloats),
                                    out("y", kFloats)};

// What passes make of them: several that read the same x are one, and take in the RMS norm before
// them and the addition, or the gate, behind them; `last`: of x [1, S, K], the last row counts. For
// queries, keys and values: with the RMS norm of each head of the first two, their rotation, and
// the update of the caches. What differs between formats is in the middle.
constexpr std::array<Arg, 3> normed(Arg x) {
  return {x, optional_in("norm", kFloats), optional_number("eps")};
}
inline constexpr std::array kWeights4 = {in("weight", kCode4, 2, 2), in("scales", kFloats, 2, 3),
                                         number("group_size"), optional_in("minimums", kFloats)};
inline constexpr std::array kWeights8 = {in("weight", kCode8, 2, 2), in("scales", kFloats)};
inline constexpr std::array kWeightFloats = {in("weight", kFloats, 2, 2)};
inline constexpr std::array kJoinedSlots = {optional_in("bias", kFloats),
                                            optional_in("residual", kFloats),
                                            optional_number("gated"),
                                            optional_number("last"),
                                            ints("widths"),
                                            out_list("y", 0, kFloats)};
constexpr Arg written_cache(std::string_view name) {
  Arg a = mutated(name, kFloats);
  a.min_rank = a.max_rank = 4;
  a.cache = true;
  return a;
}
inline constexpr std::array kRotatedSlots = {optional_in("bias", kFloats),
                                             in("freqs_cos", kFloats, 2, 2),
                                             in("freqs_sin", kFloats, 2, 2),
                                             optional_number("freqs_start"),
                                             optional_number("halves"),
                                             optional_in("q_norm", kFloats),
                                             optional_in("k_norm", kFloats),
                                             optional_number("head_eps"),
                                             written_cache("k_cache"),
                                             written_cache("v_cache"),
                                             number("start_pos"),
                                             out("y", kFloats)};

template <size_t... N>
constexpr auto in_order(const std::array<Arg, N>&... parts) {
  std::array<Arg, (N + ...)> all{};
  auto at = all.begin();
  ((at = std::copy(parts.begin(), parts.end(), at)), ...);
  return all;
}
template <size_t N>
constexpr auto joined(const std::array<Arg, N>& weights) {
  return in_order(normed(in("x", kFloats, 1)), weights, kJoinedSlots);
}
template <size_t N>
constexpr auto rotated(const std::array<Arg, N>& weights) {
  return in_order(normed(in("x", kFloats, 3, 3)), weights, kRotatedSlots);
}
inline constexpr auto kJoined4 = joined(kWeights4);
inline constexpr auto kJoined8 = joined(kWeights8);
inline constexpr auto kJoinedFloats = joined(kWeightFloats);
inline constexpr auto kRotated4 = rotated(kWeights4);
inline constexpr auto kRotated8 = rotated(kWeights8);
inline constexpr auto kRotatedFloats = rotated(kWeightFloats);

inline constexpr Row kRows[] = {
    make_row("pteryx.linear", kJoinedFloats, Codes::kNone),
    make_row("pteryx.linear_rope", kRotatedFloats, Codes::kNone),
    make_row("pteryx.linear_q4gsw", kJoined4, Codes::kLowFirst),
    make_row("pteryx.linear_q4gsw_rope", kRotated4, Codes::kLowFirst),
    make_row("pteryx.linear_q8_rope", kRotated8, Codes::kBytes),
    make_row("pteryx.linear_q8", kJoined8, Codes::kBytes),
    make_row("et_vk.linear_q4gsw.default", kGroupwise, Codes::kLowFirst),
    make_row("et_vk.linear_qcs4w.default", kChannel4, Codes::kHighFirst),
    make_row("aten._weight_int8pack_mm.default", kChannel8, Codes::kBytes),
    make_row("et_vk.linear_q8ta_q8csw.default", kStatic8, Codes::kBytes),
    make_row("et_vk.linear_dq8ca_q4gsw.default", kDynamic8, Codes::kLowFirst),
};

}  // namespace pteryx::ops::qlinear

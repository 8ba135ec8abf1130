// How an op states its schema: one Arg for each argument.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "pteryx/base/dims.h"
#include "pteryx/base/dtype.h"

namespace pteryx::ops {

// A set of element types, one bit each.
using DTypes = uint32_t;
constexpr DTypes only(DType t) { return 1U << static_cast<uint32_t>(t); }
inline constexpr DTypes kAnyType = 0xFFFFFFFFU;
inline constexpr DTypes kFloats =
    only(DType::kF16) | only(DType::kF32) | only(DType::kF64) | only(DType::kBF16);
inline constexpr DTypes kBools = only(DType::kBool);
inline constexpr DTypes kIntegers = only(DType::kU8) | only(DType::kI8) | only(DType::kI16) |
                                    only(DType::kI32) | only(DType::kI64) | only(DType::kU16) |
                                    only(DType::kU32) | only(DType::kU64);
inline constexpr DTypes kIndexTypes = only(DType::kI32) | only(DType::kI64);
// What a GPU buffer holds as it is. i64 is held as i32 where an argument is an index.
inline constexpr DTypes kGpuTypes = only(DType::kBool) | only(DType::kU8) | only(DType::kI8) |
                                    only(DType::kI32) | only(DType::kF16) | only(DType::kF32);
constexpr bool has(DTypes set, DType t) { return (set & only(t)) != 0; }

enum class ArgKind : uint8_t {
  kTensor,      // tensor
  kTensorList,  // list of tensors, possibly with None
  kNumber,      // int, float, bool or live scalar, read as either
  kInts,        // list of ints, literal or live; a single int counts as a list of one
  kNumbers,     // list of floats or ints
  kText,        // string
  kAny,         // not looked at
  kFactory,     // dtype, layout, device, pin_memory: not looked at, left out by `.out` spellings
  kOut,         // result tensor
  kOutList,     // list of result tensors
  kOutScalar,   // result scalar
};

// What elements of an index may be: places along one dim of another argument. The session refuses
// those outside that come from an input, kernels report the others (common/place.wgsl).
struct IndexBound {
  enum class Along : uint8_t {
    kRows,      // its first dim
    kDim,       // the dim that the number argument `dim` says
    kPosition,  // of member i of a list dim i; a mask takes as many dims as it has
    kEnds,      // its elements and the place behind them
  };
  uint8_t of = 0;  // the argument
  Along along = Along::kRows;
  uint8_t dim = 0;
  bool from_end = false;  // negative ones count from the end
};

struct Arg {
  std::string_view name;
  ArgKind kind = ArgKind::kTensor;
  DTypes types = kAnyType;
  uint8_t min_rank = 0;
  uint8_t max_rank = kMaxRank;
  bool optional = false;  // Null allowed
  bool mutated = false;   // written in place
  bool index = false;     // i64 may be narrowed to i32 on the way to the GPU
  bool cache = false;     // a KV cache: any of `types`, whatever other arguments have
  std::optional<IndexBound> bound = {};  // of the elements of an index, or of a list of them
  DTypes more_types = 0;                 // of results behind the first; 0: those of the first
  bool like_x = false;                   // a result of the first's types has that of argument 0
};

constexpr Arg in(std::string_view name, DTypes types = kAnyType, uint8_t min_rank = 0,
                 uint8_t max_rank = kMaxRank) {
  return {.name = name,
          .kind = ArgKind::kTensor,
          .types = types,
          .min_rank = min_rank,
          .max_rank = max_rank};
}
constexpr Arg optional_in(std::string_view name, DTypes types = kAnyType) {
  return {.name = name, .kind = ArgKind::kTensor, .types = types, .optional = true};
}
constexpr Arg index_in(std::string_view name) {
  return {.name = name, .kind = ArgKind::kTensor, .types = kIndexTypes, .index = true};
}
constexpr Arg bounded_in(std::string_view name, const IndexBound& bound) {
  Arg a = index_in(name);
  a.bound = bound;
  return a;
}
// Numbers of rows of the argument `table`.
constexpr Arg row_in(std::string_view name, uint8_t table) {
  return bounded_in(name, {.of = table});
}
// Places along a dim of the argument `x`: the one that the number argument `dim` says.
constexpr Arg place_in(std::string_view name, uint8_t x, uint8_t dim) {
  return bounded_in(name, {.of = x, .along = IndexBound::Along::kDim, .dim = dim});
}
constexpr Arg mutated(std::string_view name, DTypes types = kAnyType) {
  return {.name = name, .kind = ArgKind::kTensor, .types = types, .mutated = true};
}
constexpr Arg list_in(std::string_view name, DTypes types = kAnyType) {
  return {.name = name, .kind = ArgKind::kTensorList, .types = types};
}
// x[i0, :, i1]: places along the dims of the argument `x`, negative ones from the end, or masks.
constexpr Arg index_list_in(std::string_view name, uint8_t x) {
  return {.name = name,
          .kind = ArgKind::kTensorList,
          .index = true,
          .bound = IndexBound{.of = x, .along = IndexBound::Along::kPosition, .from_end = true}};
}
constexpr Arg number(std::string_view name) { return {.name = name, .kind = ArgKind::kNumber}; }
constexpr Arg optional_number(std::string_view name) {
  return {.name = name, .kind = ArgKind::kNumber, .optional = true};
}
constexpr Arg ints(std::string_view name) { return {.name = name, .kind = ArgKind::kInts}; }
constexpr Arg optional_ints(std::string_view name) {
  return {.name = name, .kind = ArgKind::kInts, .optional = true};
}
constexpr Arg optional_numbers(std::string_view name) {
  return {.name = name, .kind = ArgKind::kNumbers, .optional = true};
}
constexpr Arg text(std::string_view name) {
  return {.name = name, .kind = ArgKind::kText, .optional = true};
}
constexpr Arg any(std::string_view name) {
  return {.name = name, .kind = ArgKind::kAny, .optional = true};
}
constexpr Arg factory(std::string_view name) {
  return {.name = name, .kind = ArgKind::kFactory, .optional = true};
}
constexpr Arg out(std::string_view name, DTypes types = kAnyType) {
  return {.name = name, .kind = ArgKind::kOut, .types = types};
}
constexpr Arg index_out(
    std::string_view name) {  // values bounded by a size: i64 may be computed as i32
  return {.name = name, .kind = ArgKind::kOut, .types = kIndexTypes, .index = true};
}
// count members; for lists of any length 0. more_types: of those behind the first, if others.
constexpr Arg out_list(std::string_view name, uint8_t count, DTypes types, DTypes more_types = 0) {
  return {.name = name,
          .kind = ArgKind::kOutList,
          .types = types,
          .min_rank = count,
          .more_types = more_types};
}
constexpr Arg out_list_like_x(std::string_view name) {
  return {.name = name, .kind = ArgKind::kOutList, .like_x = true};
}
// Values of x, and where they are: bounded by a size, so that i64 may be computed as i32.
constexpr Arg out_values_and_indices(std::string_view name) {
  return {.name = name,
          .kind = ArgKind::kOutList,
          .min_rank = 2,
          .index = true,
          .more_types = kIndexTypes,
          .like_x = true};
}
constexpr Arg out_scalar(std::string_view name) {
  return {.name = name, .kind = ArgKind::kOutScalar};
}

}  // namespace pteryx::ops

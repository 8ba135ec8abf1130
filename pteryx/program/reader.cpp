// Checks and texts that the readers of .pte, .ptd and delegate blobs share.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/reader.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pteryx/base/checked.h"
#include "pteryx/program/program_generated.h"

namespace pteryx::program {
namespace {

std::string scalar_type_name(int8_t scalar_type) {
  switch (scalar_type) {  // PyTorch's numbers that the schema leaves out
    case 8: return "complex32";
    case 9: return "complex64";
    case 10: return "complex128";
    default: break;
  }
  const char* const known = pte::EnumNameScalarType(static_cast<pte::ScalarType>(scalar_type));
  return *known != '\0' ? std::string(known) : fmt::format("number {}", scalar_type);
}

bool is_permutation(const flatbuffers::Vector<uint8_t>& order) {
  uint32_t seen = 0;
  for (const uint8_t d : order) {
    if (d >= order.size() || (seen >> d & 1U) != 0) return false;
    seen |= 1U << d;
  }
  return true;
}

}  // namespace

Status Budget::take(uint64_t count, uint64_t each) {
  if (count > left_ / each) {
    return invalid_program(fmt::format(
        "data is corrupt: {} bytes refer to themselves so often that a copy exceeds {} bytes",
        buffer_bytes_, kBase + kPerByte * buffer_bytes_));
  }
  left_ -= count * each;
  return {};
}

Result<std::string> copy_text(const flatbuffers::String* text, Budget& budget) {
  PTERYX_TRY(budget.take(view(text).size(), 1));
  return std::string(view(text));
}

Result<std::string> copy_name(const flatbuffers::String* text, Budget& budget) {
  constexpr size_t kLongest = 256;
  const bool plain = std::none_of(view(text).begin(), view(text).end(),
                                  [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (!plain || view(text).size() > kLongest) {
    return invalid_program(
        fmt::format("name {}: expected at most {} bytes, none of them a control character",
                    quote(view(text)), kLongest));
  }
  return copy_text(text, budget);
}

std::string_view view(const flatbuffers::String* text) {
  return text == nullptr ? std::string_view() : std::string_view(text->c_str(), text->size());
}

bool is_aligned(const ByteRange& data, DType dtype) {
  return data.size == 0 || data.offset % size_bytes(dtype) == 0;
}

Result<TensorLayout> read_layout(int8_t scalar_type, const flatbuffers::Vector<int32_t>* sizes,
                                 const flatbuffers::Vector<uint8_t>* dim_order) {
  if (sizes == nullptr) return invalid_program("tensor has no sizes");
  if (dim_order == nullptr) return invalid_program("tensor has no dim_order");
  const uint32_t rank = sizes->size();
  if (rank != dim_order->size()) {
    return invalid_program(
        fmt::format("rank mismatch: {} sizes, {} in dim_order", rank, dim_order->size()));
  }
  if (rank > kMaxRank) {
    return unsupported(fmt::format("rank: expected at most {}, got {}", kMaxRank, rank));
  }
  const auto dtype = dtype_from_scalar_type(scalar_type);
  if (!dtype)
    return unsupported(fmt::format("unsupported dtype {}", scalar_type_name(scalar_type)));

  TensorLayout layout;
  layout.dtype = *dtype;
  for (uint32_t i = 0; i < rank; ++i) layout.sizes.push_back(item(*sizes, i));
  if (!checked_numel(layout.sizes.span(), size_bytes(*dtype))) {
    const bool negative =
        std::any_of(layout.sizes.begin(), layout.sizes.end(), [](int64_t v) { return v < 0; });
    return invalid_program(fmt::format("shape {} {}", to_string(layout.sizes),
                                       negative ? "is negative" : "overflows"));
  }
  layout.dim_order.assign(dim_order->begin(), dim_order->end());
  if (!is_permutation(*dim_order)) {
    return invalid_program(
        fmt::format("invalid dim_order [{}]", fmt::join(layout.dim_order, ", ")));
  }
  return layout;
}

uint64_t size_bytes(const TensorLayout& layout) {
  return static_cast<uint64_t>(numel(layout.sizes)) * size_bytes(layout.dtype);
}

std::string to_string(const TensorLayout& layout) {
  std::string text = fmt::format("{} {}", name(layout.dtype), to_string(layout.sizes));
  if (!std::is_sorted(layout.dim_order.begin(), layout.dim_order.end())) {
    text += fmt::format(" in order [{}]", fmt::join(layout.dim_order, ", "));
  }
  return text;
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 128;
  std::string out;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (text.size() > kLongest) out += "...";
  return out;
}

std::string quote(std::string_view text) { return "'" + printable(text) + "'"; }

Status at(std::string_view where, const Status& status) {
  return {status.code(), fmt::format("{}: {}", where, status.message())};
}

}  // namespace pteryx::program

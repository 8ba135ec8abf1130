// What the readers of this folder share: a verified root, a budget for copies, items of lists, text
// for messages.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"
#include "pteryx/program/program.h"

namespace pteryx::program {

// What the format can address; a Verifier may not be made for more.
inline constexpr uint64_t kMaxFlatBufferBytes = FLATBUFFERS_MAX_BUFFER_SIZE - 1;

// The root of a FlatBuffer that starts at an address aligned to 8, nullptr if any of it is
// malformed.
template <typename Root>
const Root* verified_root(Bytes buffer) {
  if (buffer.size() < 8 || buffer.size() > kMaxFlatBufferBytes) return nullptr;
  flatbuffers::Verifier::Options options;
  options.max_depth = 16;  // the schemas nest to 7
  // A table and the reference to it take 8 bytes, so only a file that visits tables again and again
  // needs more.
  options.max_tables = static_cast<flatbuffers::uoffset_t>(buffer.size() / 8 + 1);
  const auto* const start = reinterpret_cast<const uint8_t*>(buffer.data());
  flatbuffers::Verifier verifier(start, buffer.size(), options);
  return verifier.VerifyBuffer<Root>(nullptr) ? flatbuffers::GetRoot<Root>(start) : nullptr;
}

// Bounds what is copied out of one FlatBuffer. Its strings and lists may be shared, so that a small
// hostile file could ask for a copy of its size for each of its tables; a file that stores
// everything once stays far below the bound.
class Budget {
 public:
  static constexpr uint64_t kPerByte = 12;
  static constexpr uint64_t kBase = 4096;

  explicit Budget(uint64_t buffer_bytes)
      : buffer_bytes_(buffer_bytes), left_(kBase + kPerByte * buffer_bytes) {}
  // Takes `count` items of `each` bytes. Errors: kInvalidProgram when that is more than is left.
  Status take(uint64_t count, uint64_t each);

 private:
  uint64_t buffer_bytes_;
  uint64_t left_;
};

// An item of a list of scalars. The verifier leaves items of 8 bytes at multiples of 4, so none is
// read in place.
template <typename T>
T item(const flatbuffers::Vector<T>& list, uint32_t i) {
  T v;
  std::memcpy(&v, list.Data() + size_t{i} * sizeof(T), sizeof(T));
  return v;
}

template <typename T>
uint32_t count(const flatbuffers::Vector<T>* list) {
  return list == nullptr ? 0 : list->size();
}

// A copy of a list of scalars, paid for from the budget; an absent list is empty.
template <typename To, typename T>
Result<std::vector<To>> copy_list(const flatbuffers::Vector<T>* list, Budget& budget) {
  const uint32_t n = count(list);
  PTERYX_TRY(budget.take(n, sizeof(To)));
  std::vector<To> out;
  out.reserve(n);
  for (uint32_t i = 0; i < n; ++i) out.push_back(static_cast<To>(item(*list, i)));
  return out;
}

// A copy of a string, paid for from the budget; an absent string is empty.
Result<std::string> copy_text(const flatbuffers::String* text, Budget& budget);
// The same of a name, which messages and tables will show: at most 256 bytes, no control
// characters.
Result<std::string> copy_name(const flatbuffers::String* text, Budget& budget);
// The same text without a copy.
std::string_view view(const flatbuffers::String* text);

inline Bytes bytes_of_list(const flatbuffers::Vector<uint8_t>& list) {
  return std::as_bytes(std::span(list.Data(), list.size()));
}

// True if data of that element type may be read in place, in a file that is.
bool is_aligned(const ByteRange& data, DType dtype);

// dtype, sizes and dim_order as the file has them, checked. Errors: kInvalidProgram, kUnsupported.
Result<TensorLayout> read_layout(int8_t scalar_type, const flatbuffers::Vector<int32_t>* sizes,
                                 const flatbuffers::Vector<uint8_t>* dim_order);
// Never overflows after read_layout.
uint64_t size_bytes(const TensorLayout& layout);
std::string to_string(
    const TensorLayout& layout);  // "f32 [2, 3]", with the dim_order unless it is the usual one

// For messages: text of the file with unprintable bytes escaped, cut when long; quote puts it in
// '...'.
std::string printable(std::string_view text);
std::string quote(std::string_view text);
// The same error with "where: " in front.
Status at(std::string_view where, const Status& status);

}  // namespace pteryx::program

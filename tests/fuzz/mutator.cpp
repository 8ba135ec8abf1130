// Bit flips, edge values, cuts, splices and swaps. SPDX-License-Identifier: BSD-3-Clause
#include "mutator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

namespace pteryx::fuzz {

std::string Mutator::mutate(size_t which) {
  data_ = files_[which];
  const Fields& fields = fields_[which];
  const uint64_t steps = 1 + below(4);
  if (below(2) == 0 && !fields.numbers.empty()) {  // what the file says
    for (uint64_t i = 0; i < steps; ++i) {
      switch (below(8)) {
        case 0: change_name(fields); break;
        case 1:
        case 2: change_size(fields); break;
        default: change_number(fields); break;
      }
    }
    return std::move(data_);
  }
  find_hot_ranges();  // how it says it
  for (uint64_t i = 0; i < steps && !data_.empty(); ++i) step();
  return std::move(data_);
}

void Mutator::change_number(const Fields& fields) {
  const auto& to = fields.numbers[below(fields.numbers.size())];
  const auto& from = fields.numbers[below(fields.numbers.size())];
  uint64_t v = 0;
  std::memcpy(&v, data_.data() + to.at, to.size);
  switch (below(8)) {
    case 0: ++v; break;
    case 1: --v; break;
    case 2: v = interesting<uint32_t>(); break;
    case 3: v = interesting<uint64_t>(); break;
    case 4: v = uint64_t{0} - below(10); break;
    case 5:
      v = 0;
      std::memcpy(&v, data_.data() + from.at, from.size);
      break;
    default: v = below(12); break;
  }
  std::memcpy(data_.data() + to.at, &v, to.size);
}

// Gives every dim that has the size of one another size, so that tensors still go together, and
// room for the larger tensors.
void Mutator::change_size(const Fields& fields) {
  if (fields.sizes.empty()) return;
  const uint32_t from = word(fields.sizes[below(fields.sizes.size())].at);
  const std::array<uint32_t, 8> sizes = {0, 1, 2, 3, 255, 4097, 1U << 20, 0x7FFFFFFF};
  const uint32_t to = sizes[below(sizes.size())];
  for (const auto& place : fields.sizes) {
    if (word(place.at) == from) std::memcpy(data_.data() + place.at, &to, sizeof(to));
  }
  const uint64_t plenty = uint64_t{1} << 50;
  for (size_t i = 1; i < fields.planned.size(); ++i)
    std::memcpy(data_.data() + fields.planned[i].at, &plenty, sizeof(plenty));
}

// Puts the name of some other operator there if it fits: a text is preceded by its length and ends
// with a zero.
void Mutator::change_name(const Fields& fields) {
  const size_t other = below(files_.size());
  if (fields.names.empty() || fields_[other].names.empty()) return;
  const auto& to = fields.names[below(fields.names.size())];
  const auto& from = fields_[other].names[below(fields_[other].names.size())];
  if (from.size > to.size) return;
  const auto size = static_cast<uint32_t>(from.size);
  std::memcpy(data_.data() + to.at - sizeof(size), &size, sizeof(size));
  std::memcpy(data_.data() + to.at, files_[other].data() + from.at, from.size + 1);
}

// Most of a file is weights, where a change is never seen: three of four changes go to headers and
// FlatBuffers.
void Mutator::find_hot_ranges() {
  hot_.clear();
  add_hot(0, std::max<uint64_t>(word(16), 64));  // program_size of the extended header
  for (size_t at = data_.find("VH00"); at != std::string::npos; at = data_.find("VH00", at + 4)) {
    add_hot(at, 28 + uint64_t{word(at + 10)});  // flatbuffer_size of the delegate header
  }
}

void Mutator::add_hot(size_t start, uint64_t size) {
  hot_.push_back({start, static_cast<size_t>(std::min<uint64_t>(size, data_.size() - start))});
}

uint32_t Mutator::word(size_t at) const {
  uint32_t v = 0;
  if (at + sizeof(v) <= data_.size()) std::memcpy(&v, data_.data() + at, sizeof(v));
  return v;
}

size_t Mutator::place() {
  if (below(4) == 0) return below(data_.size());
  const Range& r = hot_[below(hot_.size())];
  return std::min<size_t>(r.start + below(r.size), data_.size() - 1);
}

template <typename T>
T Mutator::interesting() {
  constexpr T kMax = std::numeric_limits<T>::max();
  const auto size = static_cast<T>(data_.size());
  const std::array<T, 13> values = {0,
                                    1,
                                    kMax,  // also -1
                                    static_cast<T>(kMax - 1),
                                    kMax / 2,
                                    static_cast<T>(kMax / 2 + 1),
                                    size,
                                    static_cast<T>(size - 1),
                                    static_cast<T>(size + 1),
                                    static_cast<T>(below(32)),
                                    static_cast<T>(below(data_.size())),
                                    static_cast<T>(below(data_.size()) / 4 * 4),
                                    static_cast<T>(random_())};
  return values[below(values.size())];
}

void Mutator::step() {
  switch (below(12)) {
    case 0: data_[place()] ^= static_cast<char>(1U << below(8)); break;
    case 1: data_[place()] = static_cast<char>(interesting<uint8_t>()); break;
    case 2: shorten(); break;
    case 3: data_.erase(place(), 1 + below(16)); break;
    case 4: splice(); break;
    case 5: swap_ranges(); break;
    case 6: repeat_word(); break;
    case 7: rewrite<uint16_t>(); break;
    case 8: rewrite<uint64_t>(); break;
    default: rewrite<uint32_t>(); break;
  }
}

template <typename T>
void Mutator::rewrite() {
  const size_t at = place() / sizeof(T) * sizeof(T);
  if (at + sizeof(T) > data_.size()) return;
  T v{};
  std::memcpy(&v, data_.data() + at, sizeof(T));
  switch (below(4)) {
    case 0: v = static_cast<T>(v + 1); break;
    case 1: v = static_cast<T>(v - 1); break;
    default: v = interesting<T>(); break;
  }
  std::memcpy(data_.data() + at, &v, sizeof(T));
}

// Offsets, sizes and counts of the file itself are the likeliest to be taken for valid elsewhere.
void Mutator::repeat_word() {
  const size_t from = place() / 4 * 4;
  const size_t to = place() / 4 * 4;
  if (std::max(from, to) + 4 > data_.size()) return;
  std::memmove(data_.data() + to, data_.data() + from, 4);
}

void Mutator::swap_ranges() {
  const size_t n = 1 + below(64);
  const auto [first, second] = std::minmax({place(), place()});
  if (second + n > data_.size() || second - first < n) return;
  std::swap_ranges(data_.data() + first, data_.data() + first + n, data_.data() + second);
}

void Mutator::splice() {
  const std::string& other = files_[below(files_.size())];
  if (other.empty()) return;
  const size_t from = below(other.size());
  const std::string piece =
      other.substr(from, 1 + below(std::min<size_t>(other.size() - from, 1024)));
  const size_t at = place();
  switch (below(3)) {
    case 0: data_.insert(at, piece); break;
    case 1: data_.replace(at, std::min(piece.size(), data_.size() - at), piece); break;
    default: data_ = data_.substr(0, at) + other.substr(std::min(at, other.size())); break;
  }
}

void Mutator::shorten() {
  const size_t by = below(2) == 0 ? below(data_.size()) : below(32);
  data_.resize(data_.size() - std::min(data_.size(), by));
}

}  // namespace pteryx::fuzz

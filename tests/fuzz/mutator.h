// Seeded changes to a file: the same numbers give the same bytes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "fields.h"

namespace pteryx::fuzz {

class Mutator {
 public:
  // `files` lends pieces to splice in, and `fields` are those of each; both outlive the Mutator.
  Mutator(const std::vector<std::string>& files, const std::vector<Fields>& fields, uint64_t seed,
          uint64_t number)
      : files_(files), fields_(fields), random_(seed * 0x9E3779B97F4A7C15U + number) {}

  // A change of files[which].
  std::string mutate(size_t which);

 private:
  struct Range {
    size_t start;
    size_t size;
  };

  uint64_t below(uint64_t n) { return n == 0 ? 0 : random_() % n; }
  size_t place();
  void find_hot_ranges();
  void add_hot(size_t start, uint64_t size);
  uint32_t word(size_t at) const;
  template <typename T>
  T interesting();

  void step();
  void change_size(const Fields& fields);
  void change_number(const Fields& fields);
  void change_name(const Fields& fields);
  template <typename T>
  void rewrite();
  void repeat_word();
  void swap_ranges();
  void splice();
  void shorten();

  const std::vector<std::string>& files_;
  const std::vector<Fields>& fields_;
  std::mt19937_64 random_;
  std::string data_;
  std::vector<Range> hot_;
};

}  // namespace pteryx::fuzz

// One stable sort for all lists that are not hot: each of the standard library's would be 2 to 4 KB
// of a module for the web.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pteryx {
namespace detail {

using Before = bool (*)(const void* closure, uint32_t a, uint32_t b);
void sort_places(std::vector<uint32_t>& places, Before before, const void* closure);

}  // namespace detail

// 0 to count - 1: the places of a list.
std::vector<uint32_t> places_of(size_t count);

// Sorts places by what `before(a, b)` tells of two of them; equals keep their order.
template <typename Closure>
void sort_places(std::vector<uint32_t>& places, const Closure& before) {
  detail::sort_places(
      places,
      [](const void* closure, uint32_t a, uint32_t b) {
        return (*static_cast<const Closure*>(closure))(a, b);
      },
      &before);
}

// The places of a list in the order that `before(a, b)` asks for.
template <typename Closure>
std::vector<uint32_t> sorted_places(size_t count, const Closure& before) {
  std::vector<uint32_t> places = places_of(count);
  sort_places(places, before);
  return places;
}

}  // namespace pteryx

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/base/order.h"

#include <algorithm>
#include <numeric>

namespace pteryx {

std::vector<uint32_t> places_of(size_t count) {
  std::vector<uint32_t> places(count);
  std::iota(places.begin(), places.end(), 0U);
  return places;
}

// Merges runs of twice the length in every pass, from one list to the other and back.
void detail::sort_places(std::vector<uint32_t>& places, Before before, const void* closure) {
  const size_t count = places.size();
  std::vector<uint32_t> merged(count);
  for (size_t run = 1; run < count; run *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * run) {
      size_t left = begin;
      const size_t left_end = std::min(begin + run, count);
      size_t right = left_end;
      const size_t end = std::min(begin + 2 * run, count);
      for (size_t at = begin; at < end; ++at) {
        const bool take_right =
            left == left_end || (right < end && before(closure, places[right], places[left]));
        merged[at] = places[take_right ? right++ : left++];
      }
    }
    places.swap(merged);
  }
}

}  // namespace pteryx

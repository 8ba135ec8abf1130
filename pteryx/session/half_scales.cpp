// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/half_scales.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "pteryx/fuse/passes.h"

namespace pteryx {
namespace {

constexpr uint64_t kBlock = 8;  // columns
constexpr uint64_t kTile = 64;  // blocks whose rows are read at a time: they stay in the cache

constexpr uint32_t kSmallestHalf = 0x38800000;  // 2^-14 as an f32, below which f16 has fewer bits
constexpr uint32_t kLargestHalf = 0x477fe000;   // 65504

// Of f32 bits that are 0 or in f16's normal range: rounded to nearest even. Without branches, as
// what follows, so that compilers take several at once.
uint16_t half_of(uint32_t bits) {
  const uint32_t size = bits & 0x7fffffffU;
  const uint32_t rounded = size + 0xfffU + ((size >> 13) & 1U);
  const uint32_t half = ((rounded - 0x38000000U) >> 13) & (0U - static_cast<uint32_t>(size != 0));
  return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000U));
}

// Bytes of f32 numbers.
bool fit_f16(Bytes bytes) {
  std::array<uint32_t, 1024> bits{};
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min(bytes.size() - at, sizeof(bits));
    std::memcpy(bits.data(), &bytes[at], size);
    uint32_t outside = 0;
    for (size_t i = 0; i < bits.size(); ++i) {
      const uint32_t magnitude = bits[i] & 0x7fffffffU;
      outside |= static_cast<uint32_t>(magnitude - kSmallestHalf > kLargestHalf - kSmallestHalf) &
                 static_cast<uint32_t>(magnitude != 0);
    }
    if (outside != 0) return false;
    at += size;
  }
  return true;
}

// The numbers of parts that lie one behind the other in [groups, columns], as f16 in
// [columns / 8, groups, 8].
class BlocksSource final : public Source {
 public:
  BlocksSource(std::vector<SourcePtr> kept, std::vector<Bytes> parts, uint64_t groups,
               uint64_t columns)
      : Source(kept.front()->name()),
        kept_(std::move(kept)),
        parts_(std::move(parts)),
        groups_(groups),
        columns_(columns) {
    uint64_t end = 0;
    for (const Bytes& part : parts_) ends_.push_back(end += part.size());
  }
  uint64_t size() const override { return groups_ * columns_ * 2; }

  Result<bool> read(uint64_t offset, MutableBytes out) const override {
    if (!in_range(offset, out.size(), size())) return ended(size(), offset, out.size());
    const uint64_t block_bytes = groups_ * kBlock * 2;
    std::vector<uint16_t> halves(kTile * groups_ * kBlock);
    uint64_t block = offset / block_bytes;
    uint64_t skipped = offset % block_bytes;
    for (uint64_t done = 0; done < out.size(); block += kTile, skipped = 0) {
      const uint64_t count = std::min(kTile, columns_ / kBlock - block);
      make_blocks(block, count, halves);
      const uint64_t bytes = std::min(count * block_bytes - skipped, out.size() - done);
      std::memcpy(&out[done], std::as_bytes(std::span(halves)).data() + skipped, bytes);
      done += bytes;
    }
    return true;
  }

 private:
  void make_blocks(uint64_t first, uint64_t count, std::vector<uint16_t>& halves) const {
    std::array<uint32_t, kTile * kBlock> row{};
    for (uint64_t g = 0; g < groups_; ++g) {
      copy((g * columns_ + first * kBlock) * 4,
           std::as_writable_bytes(std::span(row)).first(count * kBlock * 4));
      for (uint64_t b = 0; b < count; ++b) {
        uint16_t* const to = &halves[(b * groups_ + g) * kBlock];
        for (uint64_t i = 0; i < kBlock; ++i) to[i] = half_of(row[b * kBlock + i]);
      }
    }
  }
  void copy(uint64_t offset, MutableBytes out) const {
    auto part = static_cast<size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
    while (!out.empty()) {
      const uint64_t left = ends_[part] - offset;
      const uint64_t bytes = std::min<uint64_t>(left, out.size());
      std::memcpy(out.data(), &parts_[part][parts_[part].size() - left], bytes);
      out = out.subspan(bytes);
      offset += bytes;
      ++part;
    }
  }

  std::vector<SourcePtr> kept_;  // what parts_ are of
  std::vector<Bytes> parts_;
  std::vector<uint64_t> ends_;
  uint64_t groups_;
  uint64_t columns_;
};

}  // namespace

void HalfScales::convert(graph::Graph& g) {
  for (const graph::ValueId id : fuse::layer_scales(g)) {
    auto& t = std::get<graph::Tensor>(g.values[graph::index(id)]);
    const auto [it, is_new] = made_.try_emplace({t.data, t.max[1]});
    if (is_new) it->second = make(t);
    if (!it->second.fits) continue;
    t.dtype = DType::kF16;
    t.max = {t.max[1] / static_cast<int64_t>(kBlock), t.max[0], static_cast<int64_t>(kBlock)};
    t.data = {it->second.data};
  }
}

HalfScales::Made HalfScales::make(const graph::Tensor& t) {
  std::vector<SourcePtr> kept;
  std::vector<Bytes> parts;
  uint64_t size = 0;
  for (const ByteRange& r : t.data) {
    size += r.size;
    const std::optional<Bytes> bytes = sources_[r.source]->view(r.offset, r.size);
    if (!bytes || r.size % 4 != 0 || !fit_f16(*bytes)) return {};
    if (r.size == 0) continue;
    parts.push_back(*bytes);
    if (std::ranges::find(kept, sources_[r.source]) == kept.end())
      kept.push_back(sources_[r.source]);
  }
  if (size != static_cast<uint64_t>(numel(t.max)) * 4) return {};
  auto source = std::make_shared<BlocksSource>(std::move(kept), std::move(parts),
                                               static_cast<uint64_t>(t.max[0]),
                                               static_cast<uint64_t>(t.max[1]));
  const ByteRange data{static_cast<uint32_t>(sources_.size()), 0, source->size()};
  sources_.push_back(std::move(source));
  return {.fits = true, .data = data};
}

}  // namespace pteryx

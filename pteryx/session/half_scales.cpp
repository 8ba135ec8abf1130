// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/half_scales.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "pteryx/fuse/passes.h"

namespace pteryx {
namespace {

constexpr uint64_t kBlock = 8;  // columns
constexpr uint64_t kTile = 64;  // blocks whose rows are read at a time: they stay in the cache

constexpr uint32_t kSmallestHalf = 0x38800000;  // 2^-14 as an f32, below which f16 has fewer bits
constexpr uint32_t kLargestHalf = 0x477fe000;   // 65504
constexpr uint32_t kInfinity = 0x7f800000;
// 2^-12: what f16 loses of numbers that are no normal halves, 2^-25, is 2^-13 of that.
constexpr uint32_t kLargeScale = 0x39800000;

// Of f32 bits of at most the largest half: rounded to nearest even. Without branches, as what
// follows, so that compilers take several at once.
uint16_t half_of(uint32_t bits) {
  const uint32_t size = bits & 0x7fffffffU;
  const uint32_t rounded = size + 0xfffU + ((size >> 13) & 1U);
  // What is no normal half counts steps of 2^-24, as the last bits of a sum with 0.5 do.
  const uint32_t steps = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + 0.5F) - 0x3f000000U;
  const uint32_t half = size < kSmallestHalf ? steps : (rounded - 0x38000000U) >> 13;
  return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000U));
}

// The magnitudes that numbers have, but for 0, as bits of f32.
struct Extent {
  uint32_t smallest = kInfinity;
  uint32_t largest = 0;
};
void extend(Extent& e, Bytes bytes) {
  std::array<uint32_t, 1024> bits{};
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min(bytes.size() - at, sizeof(bits));
    std::memcpy(bits.data(), &bytes[at], size);
    for (size_t i = 0; i < size / 4; ++i) {
      const uint32_t magnitude = bits[i] & 0x7fffffffU;
      e.smallest = std::min(e.smallest, magnitude != 0 ? magnitude : kInfinity);
      e.largest = std::max(e.largest, magnitude);
    }
    at += size;
  }
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

// The bytes of another source in memory, made by the first view: none are where only sizes are
// asked for. One thread loads.
class HeldSource final : public Source {
 public:
  explicit HeldSource(std::shared_ptr<const Source> made)
      : Source(made->name()), made_(std::move(made)) {}
  uint64_t size() const override { return made_->size(); }
  Result<bool> read(uint64_t offset, MutableBytes out) const override {
    return made_->read(offset, out);
  }
  std::optional<Bytes> view(uint64_t offset, uint64_t size) const override {
    if (!in_range(offset, size, made_->size())) return std::nullopt;
    const auto all = static_cast<size_t>(made_->size());
    if (bytes_ == nullptr) {
      auto bytes = std::make_unique_for_overwrite<std::byte[]>(all);
      const auto there = made_->read(0, {bytes.get(), all});
      if (!there.ok() || !*there) return std::nullopt;
      bytes_ = std::move(bytes);
    }
    return Bytes(bytes_.get(), all).subspan(offset, size);
  }

 private:
  std::shared_ptr<const Source> made_;
  mutable std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace

void HalfScales::convert(graph::Graph& g) {
  const fuse::LayerScales found = fuse::layer_scales(g);
  std::map<graph::ValueId, ByteRange> to;
  const auto try_one = [&](graph::ValueId id, Numbers numbers) {
    const Converted& c = converted(*g.tensor(id), numbers);
    if (c.fits) to.emplace(id, c.data);
  };
  for (const graph::ValueId id : found.scales) {
    const bool paired = std::ranges::any_of(
        found.pairs, [&](const fuse::LayerScales::Pair& p) { return p.scales == id; });
    try_one(id, paired ? Numbers::kScalesBesideMinimums : Numbers::kScales);
  }
  for (const graph::ValueId id : found.minimums) try_one(id, Numbers::kMinimums);
  // What one of a pair cannot be, the other is not; which may be in another pair.
  for (size_t before = to.size() + 1; to.size() < before;) {
    before = to.size();
    for (const auto& [scales, minimums] : found.pairs) {
      if (to.contains(scales) && to.contains(minimums)) continue;
      to.erase(scales);
      to.erase(minimums);
    }
  }
  for (const auto& [id, data] : to) {
    auto& t = std::get<graph::Tensor>(g.values[graph::index(id)]);
    t.dtype = DType::kF16;
    t.max = {t.max[1] / static_cast<int64_t>(kBlock), t.max[0], static_cast<int64_t>(kBlock)};
    t.data = {data};
  }
}

const HalfScales::Converted& HalfScales::converted(const graph::Tensor& t, Numbers numbers) {
  const auto [it, is_new] = made_.try_emplace({t.data, t.max[1], numbers});
  if (is_new) it->second = make(t, numbers);
  return it->second;
}

HalfScales::Converted HalfScales::make(const graph::Tensor& t, Numbers numbers) {
  Extent extent;
  std::vector<SourcePtr> kept;
  std::vector<Bytes> parts;
  uint64_t size = 0;
  for (const ByteRange& r : t.data) {
    size += r.size;
    const std::optional<Bytes> bytes = sources_[r.source]->view(r.offset, r.size);
    if (!bytes || r.size % 4 != 0) return {};
    extend(extent, *bytes);
    if (r.size == 0) continue;
    parts.push_back(*bytes);
    if (std::ranges::find(kept, sources_[r.source]) == kept.end())
      kept.push_back(sources_[r.source]);
  }
  if (size != static_cast<uint64_t>(numel(t.max)) * 4) return {};
  const bool whole = extent.smallest >= kSmallestHalf || numbers == Numbers::kMinimums ||
                     (numbers == Numbers::kScalesBesideMinimums && extent.largest >= kLargeScale);
  if (!whole || extent.largest > kLargestHalf) return {};
  const auto made = std::make_shared<BlocksSource>(std::move(kept), std::move(parts),
                                                   static_cast<uint64_t>(t.max[0]),
                                                   static_cast<uint64_t>(t.max[1]));
  SourcePtr source = made;
  if (kept_ == Kept::kInMemory) source = std::make_shared<HeldSource>(made);
  const ByteRange data{static_cast<uint32_t>(sources_.size()), 0, source->size()};
  sources_.push_back(std::move(source));
  return {.fits = true, .data = data};
}

}  // namespace pteryx

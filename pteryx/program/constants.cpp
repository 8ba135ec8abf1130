// Constants in a segment or inline, initial values, named and external data.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/constants.h"

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/program/program_generated.h"

namespace pteryx::program {
namespace {

constexpr std::string_view kConstant = "constant";
constexpr std::string_view kInitialValue = "initial value";

bool same_layout(const TensorLayout& a, const TensorLayout& b) {
  return a.dtype == b.dtype && a.sizes == b.sizes && a.dim_order == b.dim_order;
}

uint64_t total_bytes(std::span<const ByteRange> segments) {
  uint64_t n = 0;
  for (const ByteRange& s : segments)
    n += s.size;  // they do not overlap, so the file's size bounds it
  return n;
}

// A blob that a data file has too must be the same there. Keys may share a segment, so what is
// compared is bounded.
Status merge_named_data(NamedData own, uint64_t segment_bytes, NamedData& into,
                        std::vector<SameBytes>& compare) {
  uint64_t left = 4 * segment_bytes;
  for (const auto& [key, blob] : own) {
    const auto other = into.find(key);
    if (other == into.end()) continue;
    const ByteRange theirs = other->second.data;
    if (blob.data.size > left || blob.data.size != theirs.size) return different_data(key);
    left -= blob.data.size;
    compare.push_back({key, blob.data, theirs});
  }
  into.merge(own);  // keeps the data file's, which may have a layout
  return {};
}

}  // namespace

Status different_data(std::string_view key) {
  return invalid_program(
      fmt::format("key {} has other data in the program than in a data file", quote(key)));
}

Result<Constants::Table> Constants::read_table(std::string_view what,
                                               const pte::SubsegmentOffsets& from,
                                               std::span<const ByteRange> segments,
                                               Budget& budget) {
  if (count(from.offsets()) < 2)
    return Table{};  // entry 0 is "no data", and may name a segment that is not there
  if (from.segment_index() >= segments.size()) {
    return invalid_program(
        fmt::format("{} segment index {} >= {}", what, from.segment_index(), segments.size()));
  }
  const Table table = {.offsets = from.offsets(), .segment = segments[from.segment_index()]};
  PTERYX_TRY(budget.take(table.offsets->size(), sizeof(uint64_t)));
  for (uint32_t k = 0; k < table.offsets->size(); ++k) {
    const uint64_t offset = item(*table.offsets, k);
    if (offset > table.segment.size) {
      return invalid_program(fmt::format("{} {} offset {} is outside its segment ({})", what, k,
                                         offset, table.segment.size));
    }
  }
  return table;
}

Result<Constants> Constants::read(const Container& container, Budget& budget) {
  const pte::Program& root = *container.root;
  Constants c;
  c.container_ = &container;
  if (root.constant_segment() != nullptr) {
    PTERYX_ASSIGN(c.constants_,
                  read_table(kConstant, *root.constant_segment(), container.segments, budget));
    if (c.constants_.offsets != nullptr && count(root.constant_buffer()) != 0) {
      return invalid_program("constants stored both inline and in a segment");
    }
  }
  for (uint32_t i = 0; i < count(root.mutable_data_segments()); ++i) {
    PTERYX_ASSIGN(const Table table,
                  read_table(kInitialValue, *root.mutable_data_segments()->Get(i),
                             container.segments, budget));
    if (i == 0)
      c.initial_values_ = table;  // the only one that is used, whatever index a tensor has
  }
  return c;
}

Result<ByteRange> Constants::find(std::string_view what, const Table& table, uint32_t index,
                                  uint64_t size) {
  const uint32_t n = count(table.offsets);
  if (index >= n) return invalid_program(fmt::format("{} {} of {}", what, index, n));
  const uint64_t offset = item(*table.offsets, index);
  const auto data = slice(table.segment, offset, size);
  if (!data) {
    return invalid_program(fmt::format("{} {} needs {} bytes at {}, segment has {}", what, index,
                                       size, offset, table.segment.size));
  }
  return *data;
}

Result<ByteRange> Constants::inline_constant(uint32_t index, uint64_t size) const {
  const auto* const buffers = container_->root->constant_buffer();
  if (index >= count(buffers)) {
    return invalid_program(fmt::format("{} {} of {}", kConstant, index, count(buffers)));
  }
  const auto* const storage = buffers->Get(index)->storage();
  if (count(storage) < size) {
    return invalid_program(fmt::format("{} {} needs {} bytes, its buffer has {}", kConstant, index,
                                       size, count(storage)));
  }
  return size == 0 ? ByteRange() : container_->range_of(bytes_of_list(*storage).first(size));
}

Result<ByteRange> Constants::constant(uint32_t index, const TensorLayout& layout) const {
  const uint64_t size = size_bytes(layout);
  PTERYX_ASSIGN(const ByteRange data, constants_.offsets != nullptr
                                          ? find(kConstant, constants_, index, size)
                                          : inline_constant(index, size));
  if (!is_aligned(data, layout.dtype)) {
    return invalid_program(
        fmt::format("{} {} is misaligned for {}", kConstant, index, name(layout.dtype)));
  }
  return data;
}

Result<ByteRange> Constants::initial_value(uint32_t index, const TensorLayout& layout) const {
  return find(kInitialValue, initial_values_, index, size_bytes(layout));
}

Status add_named_data(const Container& container, Budget& budget, NamedData& into,
                      std::vector<SameBytes>& compare) {
  const auto* const entries = container.root->named_data();
  if (count(entries) == 0) return {};
  if (count(container.root->segments()) == 0) return invalid_program("named data without segments");
  PTERYX_TRY(budget.take(entries->size(), sizeof(NamedData::value_type)));
  NamedData own;
  for (uint32_t i = 0; i < entries->size(); ++i) {
    const pte::NamedData& entry = *entries->Get(i);
    if (count(entry.key()) == 0) {
      return invalid_program(fmt::format("named data entry {} has no key", i));
    }
    PTERYX_ASSIGN(std::string key, copy_text(entry.key(), budget));
    if (entry.segment_index() >= container.segments.size()) {
      return invalid_program(fmt::format("key {} refers to segment {} of {}", quote(key),
                                         entry.segment_index(), container.segments.size()));
    }
    const ByteRange data = container.segments[entry.segment_index()];
    const auto [at, added] = own.try_emplace(std::move(key), NamedBlob{.data = data, .layout = {}});
    if (!added) return invalid_program(fmt::format("duplicate key {}", quote(at->first)));
  }
  return merge_named_data(std::move(own), total_bytes(container.segments), into, compare);
}

Result<ByteRange> external_data(const NamedData& named_data, std::string_view key,
                                const TensorLayout& layout) {
  if (key.empty()) return invalid_program("external tensor has no name");
  const auto found = named_data.find(key);
  if (found == named_data.end()) {
    return invalid_program(fmt::format("no data for {}: was the .ptd file supplied?", quote(key)));
  }
  const NamedBlob& blob = found->second;
  if (!blob.layout || !same_layout(*blob.layout, layout)) {
    return invalid_program(fmt::format("{}: file has {}, program expects {}", quote(key),
                                       blob.layout ? to_string(*blob.layout) : "no layout",
                                       to_string(layout)));
  }
  // read_data_file has compared the layout with the blob's length.
  const ByteRange data = *slice(blob.data, 0, size_bytes(layout));
  if (!is_aligned(data, layout.dtype)) {
    return invalid_program(fmt::format("{} is misaligned for {}", quote(key), name(layout.dtype)));
  }
  return data;
}

}  // namespace pteryx::program

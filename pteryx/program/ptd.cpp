// External data files (.ptd). SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/ptd.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pteryx/base/checked.h"
#include "pteryx/program/flat_tensor_generated.h"
#include "pteryx/program/reader.h"

namespace pteryx::program {
namespace {

constexpr uint32_t kHeader = 40;

Result<std::vector<ByteRange>> read_segments(const ptd::FlatTensor& root, const ByteRange& data) {
  std::vector<ByteRange> segments;
  segments.reserve(root.segments()->size());
  for (uint32_t i = 0; i < root.segments()->size(); ++i) {
    const ptd::DataSegment& segment = *root.segments()->Get(i);
    const auto range = slice(data, segment.offset(), segment.size());
    if (!range) {
      return invalid_program(fmt::format("PTD segment {} exceeds the file: [{}, +{}) of {}", i,
                                         segment.offset(), segment.size(), data.size));
    }
    segments.push_back(*range);
  }
  return segments;
}

Result<NamedBlob> read_blob(const ptd::TensorLayout* layout, const ByteRange& data) {
  NamedBlob blob = {.data = data, .layout = {}};
  if (layout == nullptr) return blob;
  PTERYX_ASSIGN(blob.layout, read_layout(static_cast<int8_t>(layout->scalar_type()),
                                         layout->sizes(), layout->dim_order()));
  if (size_bytes(*blob.layout) > data.size) {
    return invalid_program(fmt::format("{} needs {} bytes, segment has {}", to_string(*blob.layout),
                                       size_bytes(*blob.layout), data.size));
  }
  return blob;
}

Result<NamedData> read_entries(const ptd::FlatTensor& root, const ByteRange& data, Budget& budget) {
  PTERYX_ASSIGN(const std::vector<ByteRange> segments, read_segments(root, data));
  const auto& entries = *root.named_data();
  PTERYX_TRY(budget.take(entries.size(), sizeof(NamedData::value_type)));
  NamedData named;
  for (uint32_t i = 0; i < entries.size(); ++i) {
    const ptd::NamedData& entry = *entries.Get(i);
    if (count(entry.key()) == 0) {
      return invalid_program(fmt::format("named data entry {} has no key", i));
    }
    PTERYX_ASSIGN(std::string key, copy_text(entry.key(), budget));
    if (entry.segment_index() >= segments.size()) {
      return invalid_program(fmt::format("key {} refers to segment {} of {}", quote(key),
                                         entry.segment_index(), segments.size()));
    }
    auto blob = read_blob(entry.tensor_layout(), segments[entry.segment_index()]);
    if (!blob.ok()) return at(fmt::format("PTD entry {}: bad layout", quote(key)), blob.status());
    const auto [where, added] = named.try_emplace(std::move(key), std::move(blob).value());
    if (!added) return invalid_program(fmt::format("duplicate key {}", quote(where->first)));
  }
  return named;
}

Result<NamedData> read_file(const DataExtent& extent, Bytes tables) {
  const auto* const root = verified_root<ptd::FlatTensor>(tables);
  if (root == nullptr) {
    return invalid_program("PTD metadata is corrupt, or written by ExecuTorch 0.6");
  }
  if (root->version() != 0) {
    return unsupported(fmt::format("PTD version {} unsupported", root->version()));
  }
  if (root->segments() == nullptr || root->named_data() == nullptr) {
    return invalid_program("PTD file has no data table");
  }
  Budget budget(tables.size());
  return read_entries(*root, extent.segments, budget);
}

}  // namespace

Result<DataExtent> read_data_extent(Bytes head, const ByteRange& file) {
  const auto characters = [&](size_t offset) {
    return std::string_view(reinterpret_cast<const char*>(head.data()) + offset, 4);
  };
  if (head.size() < kDataFileHead || characters(4) != "FT01" || characters(8) != "FH01") {
    return invalid_program("not a PTD file");
  }
  const uint32_t length = *read_at<uint32_t>(head, 12);
  if (length < kHeader) {
    return invalid_program(fmt::format("PTD header length {} < {}", length, kHeader));
  }
  // The FlatBuffer's first 8 bytes stand before the header, the others after it.
  const uint64_t inserted = *read_at<uint64_t>(head, 16);
  const auto flatbuffer_end = checked_add(inserted, *read_at<uint64_t>(head, 24));
  const uint64_t base = *read_at<uint64_t>(head, 32);
  const uint64_t size = *read_at<uint64_t>(head, 40);
  if (inserted < length || !flatbuffer_end || *flatbuffer_end > base || base > file.size ||
      *flatbuffer_end > kMaxFlatBufferBytes) {
    return invalid_program(fmt::format(
        "PTD header is inconsistent: {} + {} bytes of metadata, data from {}, file has {}",
        inserted, *read_at<uint64_t>(head, 24), base, file.size));
  }
  const auto segments = slice(file, base, size);
  if (!segments) {
    return invalid_program(fmt::format("PTD file truncated: expected {} bytes from {}, have {}",
                                       size, base, file.size - base));
  }
  return DataExtent{.tables_size = *flatbuffer_end, .segments = *segments};
}

Status read_data_file(const DataExtent& extent, Bytes tables, NamedData& into) {
  PTERYX_ASSIGN(NamedData named, read_file(extent, tables));
  for (const auto& [key, blob] : named) {
    if (into.contains(key)) return invalid_program(fmt::format("duplicate key {}", quote(key)));
  }
  into.merge(named);
  return {};
}

}  // namespace pteryx::program

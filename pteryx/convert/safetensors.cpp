// A file is the length of a JSON header, the header, and the data it describes.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "pteryx/base/file.h"
#include "pteryx/convert/json_fields.h"

namespace pteryx::convert {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLargestHeader = 100'000'000;

struct Range {
  uint64_t begin = 0, end = 0;
  std::string tensor;
};

std::optional<SourceType> source_type(std::string_view dtype) {
  if (dtype == "F32") return SourceType::kF32;
  if (dtype == "F16") return SourceType::kF16;
  if (dtype == "BF16") return SourceType::kBF16;
  return std::nullopt;
}

std::optional<std::vector<int64_t>> integers(const Json* list) {
  if (list == nullptr || !list->is_array()) return std::nullopt;
  std::vector<int64_t> out;
  for (const Json& item : *list) {
    const auto v = as_integer(item);
    if (!v || *v < 0) return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

Result<Range> add_tensor(const std::string& name, const Json& entry, Bytes data,
                         std::string_view what, Checkpoint& into) {
  const auto bad = [&](std::string_view why) {
    return invalid_program(fmt::format("{}: tensor '{}' {}", what, name, why));
  };
  const auto dtype = text(entry, "dtype");
  const auto shape = integers(member(entry, "shape"));
  const auto offsets = integers(member(entry, "data_offsets"));
  if (!dtype || !shape || !offsets || offsets->size() != 2) {
    return bad("needs a dtype, a shape and two data_offsets");
  }
  const auto begin = static_cast<uint64_t>((*offsets)[0]);
  const auto end = static_cast<uint64_t>((*offsets)[1]);
  if (begin > end || end > data.size()) {
    return bad(fmt::format("lies at [{}, {}) of {} bytes", begin, end, data.size()));
  }
  const Range range{begin, end, name};
  const auto type = source_type(*dtype);
  if (!type) {
    into.unreadable.emplace(name, *dtype);
    return range;
  }
  if (shape->size() > kMaxRank) return bad(fmt::format("has {} dims", shape->size()));
  const auto size = data_bytes(*type, *shape);
  if (!size || *size != end - begin) {
    return bad(fmt::format("{} {} has {} bytes", *dtype, to_string(*shape), end - begin));
  }
  SourceTensor t{name, *type, Dims(*shape), data.subspan(begin, end - begin)};
  if (!into.tensors.emplace(name, std::move(t)).second) return bad("is there twice");
  return range;
}

Status check_overlap(std::vector<Range>& ranges, std::string_view what) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) {
      return invalid_program(fmt::format("{}: tensors '{}' and '{}' overlap", what,
                                         ranges[i - 1].tensor, ranges[i].tensor));
    }
  }
  return {};
}

// The files an index names, which must be plain names inside the folder.
Result<std::vector<std::string>> shard_names(Bytes index) {
  PTERYX_ASSIGN(const Json j, parse_object(index, "model.safetensors.index.json"));
  const Json* map = member(j, "weight_map");
  if (map == nullptr || !map->is_object()) {
    return invalid_program("model.safetensors.index.json: no weight_map");
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items()) {
    const std::string shard = file.is_string() ? file.get<std::string>() : std::string();
    if (shard.empty() || shard.find_first_of("/\\") != std::string::npos || shard[0] == '.') {
      return invalid_program(fmt::format(
          "model.safetensors.index.json: tensor '{}' is in '{}', not a file name", tensor, shard));
    }
    names.insert(shard);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Status open_into(const std::string& folder, const std::string& file, Checkpoint& into) {
  const std::string path = (std::filesystem::path(folder) / file).string();
  PTERYX_ASSIGN(auto mapped, MappedFile::open(path));
  PTERYX_TRY(parse_safetensors(mapped->bytes(), path, into));
  into.files.push_back(std::move(mapped));
  return {};
}

}  // namespace

Status parse_safetensors(Bytes file, std::string_view what, Checkpoint& into) {
  const auto length = read_at<uint64_t>(file, 0);
  if (!length || *length > kLargestHeader || *length > file.size() - kLengthBytes) {
    return invalid_program(
        fmt::format("{}: not a safetensors file: a header of {} bytes in a file of {}", what,
                    length.value_or(0), file.size()));
  }
  PTERYX_ASSIGN(const Json header, parse_object(file.subspan(kLengthBytes, *length), what));
  const Bytes data = file.subspan(kLengthBytes + *length);
  std::vector<Range> ranges;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    PTERYX_ASSIGN(Range r, add_tensor(name, entry, data, what, into));
    if (r.begin != r.end) ranges.push_back(std::move(r));
  }
  return check_overlap(ranges, what);
}

Result<Checkpoint> open_safetensors(const std::string& folder) {
  Checkpoint out;
  const std::filesystem::path root(folder);
  std::error_code ignored;
  if (std::filesystem::exists(root / "model.safetensors", ignored)) {
    PTERYX_TRY(open_into(folder, "model.safetensors", out));
    return out;
  }
  const std::string index = (root / "model.safetensors.index.json").string();
  if (!std::filesystem::exists(index, ignored)) {
    return io_error(
        fmt::format("{}: neither model.safetensors nor model.safetensors.index.json", folder));
  }
  PTERYX_ASSIGN(const auto mapped, MappedFile::open(index));
  PTERYX_ASSIGN(const std::vector<std::string> shards, shard_names(mapped->bytes()));
  for (const std::string& shard : shards) PTERYX_TRY(open_into(folder, shard, out));
  return out;
}

}  // namespace pteryx::convert

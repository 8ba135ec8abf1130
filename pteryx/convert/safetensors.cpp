// A file is the length of a JSON header, the header, and the data it describes.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "pteryx/base/excerpt.h"
#include "pteryx/llm/tokenizer/json_fields.h"

namespace pteryx::convert {
namespace {

using llm::JsonField;

constexpr uint64_t kLengthBytes = 8;
constexpr std::string_view kWholeName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";

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

Result<std::vector<int64_t>> sizes(const JsonField& list) {
  PTERYX_TRY(list.expect_array());
  std::vector<int64_t> out;
  for (size_t i = 0; i < list.size(); ++i) {
    PTERYX_ASSIGN(const int64_t v, list.at(i).integer());
    if (v < 0) {
      return invalid_program(fmt::format("{}: expected 0 or more, got {}", list.at(i).path(), v));
    }
    out.push_back(v);
  }
  return out;
}

// Where the data of a file lies.
struct DataPart {
  uint64_t start = 0;
  uint64_t size = 0;
};

Result<Range> add_tensor(const std::string& name, const JsonField& entry, const SourcePtr& file,
                         const DataPart& data, Checkpoint& into) {
  PTERYX_TRY(entry.expect_object());
  PTERYX_ASSIGN(const std::string dtype, entry.member("dtype").string());
  PTERYX_ASSIGN(const std::vector<int64_t> shape, sizes(entry.member("shape")));
  PTERYX_ASSIGN(const std::vector<int64_t> offsets, sizes(entry.member("data_offsets")));
  const auto bad = [&](std::string_view why) {
    return invalid_program(fmt::format("tensor '{}' {}", name, why));
  };
  if (offsets.size() != 2) {
    return bad(fmt::format("has {} data_offsets, expected 2", offsets.size()));
  }
  const auto begin = static_cast<uint64_t>(offsets[0]);
  const auto end = static_cast<uint64_t>(offsets[1]);
  if (begin > end || end > data.size) {
    return bad(fmt::format("lies at [{}, {}) of {} bytes", begin, end, data.size));
  }
  const Range range{begin, end, name};
  const auto type = source_type(dtype);
  if (!type) {
    PTERYX_TRY(into.add_unreadable(name, dtype, *file));
    return range;
  }
  if (shape.size() > kMaxRank) return bad(fmt::format("has {} dims", shape.size()));
  const auto size = data_bytes(*type, shape);
  if (!size || *size != end - begin) {
    return bad(fmt::format("{} {} has {} bytes", dtype, to_string(shape), end - begin));
  }
  PTERYX_TRY(into.add({.name = name,
                       .type = *type,
                       .dims = Dims(shape),
                       .file = file,
                       .offset = data.start + begin,
                       .size = *size}));
  return range;
}

Status check_overlap(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) {
      return invalid_program(
          fmt::format("tensors '{}' and '{}' overlap", ranges[i - 1].tensor, ranges[i].tensor));
    }
  }
  return {};
}

// The header, in which no tensor may be there twice: a parser alone would keep the last.
Result<Json> parse_header(std::string_view text) {
  PTERYX_ASSIGN(Json header, parse_json(text, "the header", {.unique = true}));
  if (header.object() == nullptr) return invalid_program("the header is not a JSON object");
  return header;
}

Status parse(const SourcePtr& file, Checkpoint& into) {
  uint64_t length = 0;
  if (file->size() >= kLengthBytes) {
    PTERYX_TRY(file->read_now(0, std::as_writable_bytes(std::span(&length, 1))));
  }
  if (file->size() < kLengthBytes || length > kLargestSafetensorsHeader ||
      length > file->size() - kLengthBytes) {
    return invalid_program(fmt::format(
        "not a safetensors file: a header of {} bytes in a file of {}", length, file->size()));
  }
  std::string text(length, '\0');
  PTERYX_TRY(file->read_now(kLengthBytes, std::as_writable_bytes(std::span(text))));
  PTERYX_ASSIGN(const Json header, parse_header(text));
  const DataPart data = {.start = kLengthBytes + length,
                         .size = file->size() - kLengthBytes - length};
  std::vector<Range> ranges;
  for (const auto& [name, entry] : *header.object()) {
    if (name == "__metadata__") continue;
    PTERYX_ASSIGN(Range r, add_tensor(name, JsonField(entry, name), file, data, into));
    if (r.begin != r.end) ranges.push_back(std::move(r));
  }
  return check_overlap(ranges);
}

// The files an index names, which must be plain names inside the folder.
Result<std::set<std::string>> shard_names(const std::string& index) {
  PTERYX_ASSIGN(const Json j, parse_json(std::as_bytes(std::span(index)), kIndexName));
  const JsonField map = JsonField(j, "").member("weight_map");
  PTERYX_TRY(map.expect_object());
  std::set<std::string> names;
  for (const auto& [tensor, file] : *map.value().object()) {
    PTERYX_ASSIGN(const std::string shard, JsonField(file, "weight_map." + tensor).string());
    if (!shard.ends_with(".safetensors") || shard.find_first_of("/\\") != std::string::npos ||
        shard[0] == '.') {
      return invalid_program(fmt::format("weight_map.{}: expected NAME.safetensors, got '{}'",
                                         excerpt(tensor), excerpt(shard)));
    }
    names.insert(shard);
  }
  return names;
}

}  // namespace

Status parse_safetensors(const SourcePtr& file, Checkpoint& into) {
  Status s = parse(file, into);
  if (!s.ok()) return std::move(s).during("reading " + file->name());
  return s;
}

Result<std::vector<std::string>> safetensors_files(const std::string& folder) {
  const std::filesystem::path root(folder);
  const std::string whole = (root / kWholeName).string();
  const std::string index = (root / kIndexName).string();
  std::error_code ignored;
  if (std::filesystem::exists(whole, ignored)) return std::vector{whole};
  if (!std::filesystem::exists(index, ignored)) {
    return io_error(fmt::format("{}: holds neither {} nor {}", folder, kWholeName, kIndexName));
  }
  PTERYX_ASSIGN(const std::string text, read_all(index, kLargestSafetensorsHeader));
  auto names = shard_names(text);
  if (!names.ok()) return std::move(names).status().during("reading " + index);
  std::vector<std::string> files = {index};
  for (const std::string& shard : *names) files.push_back((root / shard).string());
  return files;
}

Result<Checkpoint> open_safetensors(const std::string& folder) {
  PTERYX_ASSIGN(const std::vector<std::string> files, safetensors_files(folder));
  Checkpoint out;
  for (const std::string& path : files) {
    if (files.size() > 1 && path == files.front()) continue;  // the index
    PTERYX_ASSIGN(const SourcePtr file, open_source(path));
    PTERYX_TRY(parse_safetensors(file, out));
  }
  return out;
}

}  // namespace pteryx::convert

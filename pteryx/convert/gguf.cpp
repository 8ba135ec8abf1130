// Header, metadata, descriptions of tensors, padding, data. Every count is checked against the
// bytes that are left before anything is made of it.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/gguf.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "pteryx/base/checked.h"

namespace pteryx::convert {
namespace {

enum Kind : uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

constexpr uint64_t kSmallestString = 8;
constexpr uint64_t kSmallestEntry = kSmallestString + 4 + 1;
constexpr uint64_t kSmallestTensor = kSmallestString + 4 + 4 + 8;
constexpr uint32_t kMostDims = 4;
constexpr uint64_t kLargestAlignment = 1 << 20;

// Reads one thing after another; the first that does not fit makes it an error.
class Cursor {
 public:
  explicit Cursor(Bytes file) : file_(file) {}
  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.size() - at_; }

  template <typename T>
  Result<T> scalar(std::string_view what) {
    const auto v = read_at<T>(file_, at_);
    if (!v) return truncated(what);
    at_ += sizeof(T);
    return *v;
  }
  Result<std::string_view> string(std::string_view what) {
    PTERYX_ASSIGN(const auto size, scalar<uint64_t>(what));
    const auto bytes = slice(file_, at_, size);
    if (!bytes) return truncated(what);
    at_ += size;
    return std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
  // A number of items of at least `smallest` bytes each.
  Result<uint64_t> count(std::string_view what, uint64_t smallest) {
    PTERYX_ASSIGN(const auto n, scalar<uint64_t>(what));
    if (n > left() / smallest) {
      return invalid_program(
          fmt::format("GGUF: {} {} do not fit the {} bytes that are left", n, what, left()));
    }
    return n;
  }

 private:
  Status truncated(std::string_view what) const {
    return invalid_program(
        fmt::format("GGUF: truncated in {} at byte {} of {}", what, at_, file_.size()));
  }
  Bytes file_;
  uint64_t at_ = 0;
};

template <typename T, typename As>
Result<GgufValue> number_as(Cursor& c, std::string_view key) {
  PTERYX_ASSIGN(const T v, c.scalar<T>(key));
  return GgufValue(static_cast<As>(v));
}

Result<GgufValue> read_scalar(Cursor& c, uint32_t kind, std::string_view key) {
  switch (kind) {
    case kU8: return number_as<uint8_t, uint64_t>(c, key);
    case kI8: return number_as<int8_t, int64_t>(c, key);
    case kU16: return number_as<uint16_t, uint64_t>(c, key);
    case kI16: return number_as<int16_t, int64_t>(c, key);
    case kU32: return number_as<uint32_t, uint64_t>(c, key);
    case kI32: return number_as<int32_t, int64_t>(c, key);
    case kU64: return number_as<uint64_t, uint64_t>(c, key);
    case kI64: return number_as<int64_t, int64_t>(c, key);
    case kF32: return number_as<float, double>(c, key);
    case kF64: return number_as<double, double>(c, key);
    case kBool: return number_as<uint8_t, bool>(c, key);
    case kString: {
      PTERYX_ASSIGN(const std::string_view s, c.string(key));
      return GgufValue(s);
    }
    default: return invalid_program(fmt::format("GGUF: '{}' has unknown type {}", key, kind));
  }
}

double as_double(const GgufValue& v) {
  if (const auto* u = std::get_if<uint64_t>(&v)) return static_cast<double>(*u);
  if (const auto* i = std::get_if<int64_t>(&v)) return static_cast<double>(*i);
  if (const auto* b = std::get_if<bool>(&v)) return *b ? 1 : 0;
  const auto* d = std::get_if<double>(&v);
  return d == nullptr ? 0 : *d;
}

Result<GgufValue> read_array(Cursor& c, std::string_view key) {
  PTERYX_ASSIGN(const auto kind, c.scalar<uint32_t>(key));
  if (kind == kArray) return unsupported(fmt::format("GGUF: '{}' is an array of arrays", key));
  PTERYX_ASSIGN(const uint64_t n,
                c.count(fmt::format("items of '{}'", key), kind == kString ? kSmallestString : 1));
  GgufArray list;
  if (kind == kString) {
    list.strings.reserve(n);
  } else {
    list.numbers.reserve(n);
  }
  for (uint64_t i = 0; i < n; ++i) {
    PTERYX_ASSIGN(const GgufValue item, read_scalar(c, kind, key));
    if (const auto* s = std::get_if<std::string_view>(&item)) {
      list.strings.push_back(*s);
    } else {
      list.numbers.push_back(as_double(item));
    }
  }
  return GgufValue(std::move(list));
}

std::optional<SourceType> source_type(uint32_t ggml) {
  switch (ggml) {
    case 0: return SourceType::kF32;
    case 1: return SourceType::kF16;
    case 2: return SourceType::kQ4_0;
    case 3: return SourceType::kQ4_1;
    case 6: return SourceType::kQ5_0;
    case 7: return SourceType::kQ5_1;
    case 8: return SourceType::kQ8_0;
    case 12: return SourceType::kQ4_K;
    case 13: return SourceType::kQ5_K;
    case 14: return SourceType::kQ6_K;
    case 30: return SourceType::kBF16;
    default: return std::nullopt;
  }
}

struct TensorEntry {
  std::string_view name;
  Dims dims;
  uint32_t type = 0;
  uint64_t offset = 0;
};

// Dims are written innermost first.
Result<TensorEntry> read_tensor(Cursor& c) {
  TensorEntry t;
  PTERYX_ASSIGN(t.name, c.string("the name of a tensor"));
  PTERYX_ASSIGN(const auto rank, c.scalar<uint32_t>(t.name));
  if (rank > kMostDims) {
    return invalid_program(fmt::format("GGUF: tensor '{}' has {} dims", t.name, rank));
  }
  for (uint32_t d = 0; d < rank; ++d) {
    PTERYX_ASSIGN(const auto size, c.scalar<uint64_t>(t.name));
    if (!fits<int64_t>(size)) {
      return invalid_program(fmt::format("GGUF: tensor '{}' has a dim of {}", t.name, size));
    }
    t.dims.insert(0, static_cast<int64_t>(size));
  }
  PTERYX_ASSIGN(t.type, c.scalar<uint32_t>(t.name));
  PTERYX_ASSIGN(t.offset, c.scalar<uint64_t>(t.name));
  return t;
}

Status add_tensor(const TensorEntry& t, Bytes data, uint64_t alignment, Checkpoint& into) {
  const auto type = source_type(t.type);
  if (!type) {
    into.unreadable.emplace(t.name, fmt::format("ggml {}", t.type));
    return {};
  }
  const auto size = data_bytes(*type, t.dims.span());
  if (!size) {
    return invalid_program(fmt::format("GGUF: tensor '{}' of {} cannot have dims {}", t.name,
                                       name(*type), to_string(t.dims)));
  }
  const auto bytes = slice(data, t.offset, *size);
  if (!bytes || t.offset % alignment != 0) {
    return invalid_program(
        fmt::format("GGUF: tensor '{}' has {} bytes at {}, the file has {} aligned to {}", t.name,
                    *size, t.offset, data.size(), alignment));
  }
  SourceTensor tensor{.name = std::string(t.name), .type = *type, .dims = t.dims, .data = *bytes};
  if (!into.tensors.emplace(t.name, std::move(tensor)).second) {
    return invalid_program(fmt::format("GGUF: tensor '{}' is there twice", t.name));
  }
  return {};
}

Status check_header(Cursor& c) {
  PTERYX_ASSIGN(const auto magic, c.scalar<uint32_t>("the header"));
  if (magic != 0x46554747) return invalid_program("not a GGUF file");
  PTERYX_ASSIGN(const auto version, c.scalar<uint32_t>("the header"));
  if (version == 2 || version == 3) return {};
  if ((version & 0xffff) == 0) return unsupported("GGUF: the file is big-endian");
  return unsupported(fmt::format("GGUF version {} (2 and 3 are read)", version));
}

}  // namespace

Result<GgufFile> GgufFile::parse(Bytes file) {
  Cursor c(file);
  PTERYX_TRY(check_header(c));
  PTERYX_ASSIGN(const uint64_t tensors, c.count("tensors", kSmallestTensor));
  PTERYX_ASSIGN(const uint64_t entries, c.count("metadata entries", kSmallestEntry));
  GgufFile out;
  for (uint64_t i = 0; i < entries; ++i) {
    PTERYX_ASSIGN(const std::string_view key, c.string("a metadata key"));
    PTERYX_ASSIGN(const auto kind, c.scalar<uint32_t>(key));
    PTERYX_ASSIGN(GgufValue v, kind == kArray ? read_array(c, key) : read_scalar(c, kind, key));
    if (!out.metadata_.emplace(key, std::move(v)).second) {
      return invalid_program(fmt::format("GGUF: metadata '{}' is there twice", key));
    }
  }
  std::vector<TensorEntry> list;
  for (uint64_t i = 0; i < tensors; ++i) {
    PTERYX_ASSIGN(TensorEntry t, read_tensor(c));
    list.push_back(t);
  }
  const int64_t alignment = out.integer("general.alignment").value_or(32);
  if (alignment <= 0 || static_cast<uint64_t>(alignment) > kLargestAlignment) {
    return invalid_program(fmt::format("GGUF: general.alignment is {}", alignment));
  }
  const uint64_t start = align_up(c.at(), static_cast<uint64_t>(alignment));
  const Bytes data = start < file.size() ? file.subspan(start) : Bytes();
  for (const TensorEntry& t : list) {
    PTERYX_TRY(add_tensor(t, data, static_cast<uint64_t>(alignment), out.checkpoint_));
  }
  return out;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto at = metadata_.find(key);
  return at == metadata_.end() ? nullptr : &at->second;
}

std::optional<int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* v = find(key);
  if (v == nullptr) return std::nullopt;
  if (const auto* i = std::get_if<int64_t>(v)) return *i;
  if (const auto* b = std::get_if<bool>(v)) return *b ? 1 : 0;
  const auto* u = std::get_if<uint64_t>(v);
  if (u == nullptr || !fits<int64_t>(*u)) return std::nullopt;
  return static_cast<int64_t>(*u);
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* v = find(key);
  if (v == nullptr || std::holds_alternative<std::string_view>(*v) ||
      std::holds_alternative<GgufArray>(*v)) {
    return std::nullopt;
  }
  return as_double(*v);
}

std::optional<std::string_view> GgufFile::text(std::string_view key) const {
  const GgufValue* v = find(key);
  const auto* s = v == nullptr ? nullptr : std::get_if<std::string_view>(v);
  return s == nullptr ? std::nullopt : std::optional(*s);
}

const GgufArray* GgufFile::array(std::string_view key) const {
  const GgufValue* v = find(key);
  return v == nullptr ? nullptr : std::get_if<GgufArray>(v);
}

}  // namespace pteryx::convert

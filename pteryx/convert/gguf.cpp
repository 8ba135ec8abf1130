// Header, metadata, descriptions of tensors, padding, data. Every count is checked against the
// bytes that are left before anything is made of it.
// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/gguf.h"

#include <algorithm>
#include <optional>
#include <span>

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
constexpr uint64_t kLargestString = 64 << 20;
constexpr uint64_t kWindowBytes = 1 << 18;
constexpr uint32_t kMostDims = 4;
// Far above any model: vocabularies have some 10^5 tokens and merges, models some 10^3 tensors.
constexpr uint64_t kMostItems = 1 << 22;
constexpr uint64_t kMostTensors = 1 << 17;
constexpr int64_t kLargestAlignment = 1 << 20;

// Reads one thing after another, a window of the file at a time.
class Cursor {
 public:
  explicit Cursor(const Source& file) : file_(file) {}
  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.size() - at_; }

  template <typename T>
  Result<T> scalar(std::string_view what) {
    T v;
    PTERYX_TRY(take(std::as_writable_bytes(std::span(&v, 1)), what));
    return v;
  }
  Result<std::string> string(std::string_view what) {
    PTERYX_ASSIGN(const auto size, scalar<uint64_t>(what));
    if (size > left()) return truncated(what);
    if (size > kLargestString) {
      return invalid_program(fmt::format("GGUF: {} at byte {}: expected at most {} bytes, got {}",
                                         what, at_, kLargestString, size));
    }
    std::string s(size, '\0');
    PTERYX_TRY(take(std::as_writable_bytes(std::span(s)), what));
    return s;
  }
  // A number of items of at least `smallest` bytes each.
  Result<uint64_t> count(std::string_view what, uint64_t smallest, uint64_t most) {
    PTERYX_ASSIGN(const auto n, scalar<uint64_t>(what));
    if (n > most)
      return invalid_program(fmt::format("GGUF: {} {}: expected at most {}", n, what, most));
    if (n > left() / smallest) {
      return invalid_program(
          fmt::format("GGUF: {} {} do not fit in the {} bytes left", n, what, left()));
    }
    return n;
  }

 private:
  Status take(MutableBytes out, std::string_view what) {
    if (out.size() > left()) return truncated(what);
    while (!out.empty()) {
      if (window_.empty()) PTERYX_TRY(fill());
      const size_t n = std::min(out.size(), window_.size());
      std::copy_n(window_.begin(), n, out.begin());
      window_ = window_.subspan(n);
      out = out.subspan(n);
      at_ += n;
    }
    return {};
  }
  Status fill() {
    buffer_.resize(std::min(kWindowBytes, left()));
    PTERYX_TRY(file_.read_now(at_, buffer_));
    window_ = buffer_;
    return {};
  }
  Status truncated(std::string_view what) const {
    return invalid_program(
        fmt::format("GGUF: truncated in {} at byte {} of {}", what, at_, file_.size()));
  }

  const Source& file_;
  std::vector<std::byte> buffer_;
  Bytes window_;  // of the buffer: what comes next
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
      PTERYX_ASSIGN(std::string s, c.string(key));
      return GgufValue(std::move(s));
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
  PTERYX_ASSIGN(const uint64_t n, c.count(fmt::format("items of '{}'", key),
                                          kind == kString ? kSmallestString : 1, kMostItems));
  std::vector<std::string> strings;
  std::vector<double> numbers;
  for (uint64_t i = 0; i < n; ++i) {
    PTERYX_ASSIGN(GgufValue item, read_scalar(c, kind, key));
    if (auto* s = std::get_if<std::string>(&item)) {
      strings.push_back(std::move(*s));
    } else {
      numbers.push_back(as_double(item));
    }
  }
  return kind == kString ? GgufValue(std::move(strings)) : GgufValue(std::move(numbers));
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
  std::string name;
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

// Where the data of a file lies.
struct DataPart {
  uint64_t start = 0;
  uint64_t alignment = 1;
};

Status add_tensor(TensorEntry t, const SourcePtr& file, const DataPart& data, Checkpoint& into) {
  const auto type = source_type(t.type);
  if (!type) {
    return into.add_unreadable(std::move(t.name), fmt::format("ggml type {}", t.type), *file);
  }
  const auto size = data_bytes(*type, t.dims.span());
  if (!size) {
    return invalid_program(fmt::format("GGUF: tensor '{}' of {} cannot have dims {}", t.name,
                                       name(*type), to_string(t.dims)));
  }
  const uint64_t held = file->size() > data.start ? file->size() - data.start : 0;
  if (!in_range(t.offset, *size, held)) {
    return invalid_program(
        fmt::format("GGUF: tensor '{}' has {} bytes at byte {} of the data, which has {} bytes",
                    t.name, *size, t.offset, held));
  }
  if (t.offset % data.alignment != 0) {
    return invalid_program(fmt::format("GGUF: tensor '{}' starts at byte {}, not a multiple of {}",
                                       t.name, t.offset, data.alignment));
  }
  return into.add({.name = std::move(t.name),
                   .type = *type,
                   .dims = t.dims,
                   .file = file,
                   .offset = data.start + t.offset,
                   .size = *size});
}

Status check_header(Cursor& c) {
  PTERYX_ASSIGN(const auto magic, c.scalar<uint32_t>("the header"));
  if (magic != 0x46554747) return invalid_program("not a GGUF file");
  PTERYX_ASSIGN(const auto version, c.scalar<uint32_t>("the header"));
  if (version == 2 || version == 3) return {};
  if ((version & 0xffff) == 0) return unsupported("big-endian GGUF files are not supported");
  return unsupported(fmt::format("GGUF version {} is not supported (2 and 3 are)", version));
}

constexpr size_t kLongestShown = 40;  // of strings in messages

std::string describe(const GgufValue& v) {
  struct Describe {
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(const std::string& s) const {
      return s.size() <= kLongestShown ? fmt::format("the string '{}'", s) : "a string";
    }
    std::string operator()(const std::vector<std::string>&) const { return "an array of strings"; }
    std::string operator()(const std::vector<double>&) const { return "an array of numbers"; }
    std::string operator()(uint64_t n) const { return fmt::format("{}", n); }
    std::string operator()(int64_t n) const { return fmt::format("{}", n); }
    std::string operator()(double n) const { return fmt::format("{}", n); }
  };
  return std::visit(Describe(), v);
}

Status wrong_type(std::string_view key, std::string_view expected, const GgufValue& got) {
  return invalid_program(
      fmt::format("GGUF: '{}': expected {}, got {}", key, expected, describe(got)));
}

}  // namespace

Result<GgufFile> GgufFile::parse(const SourcePtr& file) {
  Cursor c(*file);
  PTERYX_TRY(check_header(c));
  PTERYX_ASSIGN(const uint64_t tensors, c.count("tensors", kSmallestTensor, kMostTensors));
  PTERYX_ASSIGN(const uint64_t entries, c.count("metadata entries", kSmallestEntry, kMostTensors));
  GgufFile out;
  out.name_ = file->name();
  for (uint64_t i = 0; i < entries; ++i) {
    PTERYX_ASSIGN(const std::string key, c.string("a metadata key"));
    PTERYX_ASSIGN(const auto kind, c.scalar<uint32_t>(key));
    PTERYX_ASSIGN(GgufValue v, kind == kArray ? read_array(c, key) : read_scalar(c, kind, key));
    if (!out.metadata_.emplace(key, std::move(v)).second) {
      return invalid_program(fmt::format("GGUF: metadata '{}' occurs twice", key));
    }
  }
  std::vector<TensorEntry> list;
  for (uint64_t i = 0; i < tensors; ++i) {
    PTERYX_ASSIGN(TensorEntry t, read_tensor(c));
    list.push_back(std::move(t));
  }
  int64_t alignment = 32;
  PTERYX_TRY(out.read("general.alignment", alignment));
  if (alignment <= 0 || alignment > kLargestAlignment) {
    return invalid_program(fmt::format("GGUF: 'general.alignment': expected 1 to {}, got {}",
                                       kLargestAlignment, alignment));
  }
  PTERYX_TRY(out.read("split.no", out.split_.part));
  PTERYX_TRY(out.read("split.count", out.split_.parts));
  PTERYX_TRY(out.read("split.tensors.count", out.split_.tensors));
  if (out.split_.parts <= 1) out.split_ = {};
  const DataPart data = {.start = align_up(c.at(), static_cast<uint64_t>(alignment)),
                         .alignment = static_cast<uint64_t>(alignment)};
  for (TensorEntry& t : list) {
    PTERYX_TRY(add_tensor(std::move(t), file, data, out.checkpoint_));
  }
  return out;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto at = metadata_.find(key);
  return at == metadata_.end() ? nullptr : &at->second;
}

Status GgufFile::missing(std::string_view key) {
  return invalid_program(fmt::format("GGUF: '{}' is missing", key));
}

Status GgufFile::read(std::string_view key, int64_t& out) const {
  const GgufValue* v = find(key);
  if (v == nullptr) return {};
  const auto* u = std::get_if<uint64_t>(v);
  const auto* i = std::get_if<int64_t>(v);
  if (i == nullptr && (u == nullptr || !fits<int64_t>(*u))) {
    return wrong_type(key, "an integer", *v);
  }
  out = i != nullptr ? *i : static_cast<int64_t>(*u);
  return {};
}

Status GgufFile::read(std::string_view key, double& out) const {
  const GgufValue* v = find(key);
  if (v == nullptr) return {};
  const bool number = std::holds_alternative<double>(*v) || std::holds_alternative<int64_t>(*v) ||
                      std::holds_alternative<uint64_t>(*v);
  if (!number) return wrong_type(key, "a number", *v);
  out = as_double(*v);
  return {};
}

Status GgufFile::read(std::string_view key, bool& out) const {
  const GgufValue* v = find(key);
  if (v == nullptr) return {};
  const bool flag = std::holds_alternative<bool>(*v) || *v == GgufValue(uint64_t{0}) ||
                    *v == GgufValue(uint64_t{1}) || *v == GgufValue(int64_t{0}) ||
                    *v == GgufValue(int64_t{1});
  if (!flag) return wrong_type(key, "true or false", *v);
  out = as_double(*v) != 0;
  return {};
}

Status GgufFile::read(std::string_view key, std::string& out) const {
  return read_as(key, "a string", out);
}

Status GgufFile::read(std::string_view key, std::vector<std::string>& out) const {
  return read_as(key, "an array of strings", out);
}

Status GgufFile::read(std::string_view key, std::vector<double>& out) const {
  return read_as(key, "an array of numbers", out);
}

template <typename T>
Status GgufFile::read_as(std::string_view key, std::string_view expected, T& out) const {
  const GgufValue* v = find(key);
  if (v == nullptr) return {};
  const T* as = std::get_if<T>(v);
  if (as == nullptr) return wrong_type(key, expected, *v);
  out = *as;
  return {};
}

}  // namespace pteryx::convert

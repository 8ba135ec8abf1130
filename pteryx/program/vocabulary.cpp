// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/vocabulary.h"

#include <string_view>

#include <fmt/format.h>

namespace pteryx::program {
namespace {

constexpr std::string_view kMagic = "PTVOCAB1";

template <typename T>
void put(std::string& out, T v) {
  out.append(reinterpret_cast<const char*>(&v), sizeof(T));
}
void put_size(std::string& out, size_t n) { put(out, static_cast<uint32_t>(n)); }
void put_text(std::string& out, std::string_view s) {
  put_size(out, s.size());
  out += s;
}

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  template <typename T>
  Status scalar(T& out) {
    const auto v = read_at<T>(bytes_, at_);
    if (!v) return truncated();
    out = *v;
    at_ += sizeof(T);
    return {};
  }
  Status text(std::string& out) {
    uint32_t size = 0;
    PTERYX_TRY(scalar(size));
    const auto part = slice(bytes_, at_, size);
    if (!part) return truncated();
    out.assign(reinterpret_cast<const char*>(part->data()), part->size());
    at_ += size;
    return {};
  }
  // A number of items of at least `smallest` bytes each.
  Status count(uint32_t& n, uint64_t smallest) {
    PTERYX_TRY(scalar(n));
    return n <= (bytes_.size() - at_) / smallest ? Status() : truncated();
  }
  Status texts(std::vector<std::string>& out) {
    uint32_t n = 0;
    PTERYX_TRY(count(n, sizeof(uint32_t)));
    out.resize(n);
    for (std::string& s : out) PTERYX_TRY(text(s));
    return {};
  }
  template <typename T>
  Status scalars(std::vector<T>& out) {
    uint32_t n = 0;
    PTERYX_TRY(count(n, sizeof(T)));
    out.resize(n);
    for (T& v : out) PTERYX_TRY(scalar(v));
    return {};
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  Status truncated() const {
    return invalid_program(
        fmt::format("vocabulary: truncated at byte {} of {}", at_, bytes_.size()));
  }
  Bytes bytes_;
  uint64_t at_ = kMagic.size();
};

Status read_numbers(Reader& r, Vocabulary& v) {
  uint32_t n = 0;
  PTERYX_TRY(r.count(n, sizeof(uint32_t) + sizeof(int64_t)));
  for (uint32_t i = 0; i < n; ++i) {
    std::string key;
    PTERYX_TRY(r.text(key));
    PTERYX_TRY(r.scalar(v.numbers[key]));
  }
  return {};
}

}  // namespace

std::string write_vocabulary(const Vocabulary& v) {
  std::string out(kMagic);
  put_text(out, v.model);
  put_text(out, v.pre);
  put_size(out, v.numbers.size());
  for (const auto& [key, number] : v.numbers) {
    put_text(out, key);
    put(out, number);
  }
  put_size(out, v.tokens.size());
  for (const std::string& s : v.tokens) put_text(out, s);
  put_size(out, v.scores.size());
  for (const float s : v.scores) put(out, s);
  put_size(out, v.types.size());
  for (const int32_t t : v.types) put(out, t);
  put_size(out, v.merges.size());
  for (const std::string& s : v.merges) put_text(out, s);
  return out;
}

Result<Vocabulary> read_vocabulary(Bytes bytes) {
  const auto magic = slice(bytes, 0, kMagic.size());
  if (!magic ||
      std::string_view(reinterpret_cast<const char*>(magic->data()), magic->size()) != kMagic) {
    return invalid_program("not a vocabulary: it does not start with 'PTVOCAB1'");
  }
  Vocabulary v;
  Reader r(bytes);
  PTERYX_TRY(r.text(v.model));
  PTERYX_TRY(r.text(v.pre));
  PTERYX_TRY(read_numbers(r, v));
  PTERYX_TRY(r.texts(v.tokens));
  PTERYX_TRY(r.scalars(v.scores));
  PTERYX_TRY(r.scalars(v.types));
  PTERYX_TRY(r.texts(v.merges));
  if (!r.at_end()) return invalid_program("vocabulary: bytes after its end");
  const auto fits_tokens = [&](size_t n) { return n == 0 || n == v.tokens.size(); };
  if (!fits_tokens(v.scores.size()) || !fits_tokens(v.types.size())) {
    return invalid_program(fmt::format("vocabulary: {} tokens with {} scores and {} types",
                                       v.tokens.size(), v.scores.size(), v.types.size()));
  }
  return v;
}

}  // namespace pteryx::program

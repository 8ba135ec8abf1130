// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/fingerprint.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "pteryx/base/file.h"

namespace pteryx::convert {
namespace {

constexpr uint64_t kHead = 8 << 20;
constexpr uint64_t kSample = 4096;
constexpr uint64_t kSamples = 512;

uint64_t stir(uint64_t h) {
  h ^= h >> 32U;
  h *= 0xD6E8FEB86659FD93U;
  return h ^ (h >> 29U);
}

}  // namespace

void Fingerprint::mix(Bytes bytes) {
  const uint64_t length = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    a_ = (a_ ^ word) * 0x9FB21C651E98DF25U;
    a_ ^= a_ >> 35U;
    b_ = std::rotl(b_ + word, 23) * 0x2545F4914F6CDD1DU;
  }
  a_ = stir(a_ ^ length);
  b_ = stir(b_ + length);
}

void Fingerprint::add(std::string_view text) { mix(std::as_bytes(std::span(text))); }

Status Fingerprint::add_file(const std::string& path) {
  PTERYX_ASSIGN(const auto file, MappedFile::open(path));
  const Bytes bytes = file->bytes();
  mix(bytes.first(std::min<size_t>(bytes.size(), kHead)));
  a_ = stir(a_ ^ bytes.size());
  if (bytes.size() <= kHead) return {};
  const uint64_t rest = bytes.size() - kHead;
  for (uint64_t i = 1; i <= kSamples; ++i) {
    const uint64_t end = kHead + rest / kSamples * i + (i == kSamples ? rest % kSamples : 0);
    mix(bytes.subspan(end - std::min(kSample, rest), std::min(kSample, rest)));
  }
  return {};
}

std::string Fingerprint::text() const { return fmt::format("{:016x}{:016x}", stir(a_), stir(b_)); }

}  // namespace pteryx::convert

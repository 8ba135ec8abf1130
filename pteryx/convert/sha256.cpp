// FIPS 180-4. SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/convert/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace pteryx::convert {
namespace {

constexpr std::array<uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const std::byte* p) {
  uint32_t v = 0;
  std::memcpy(&v, p, sizeof(v));
  return __builtin_bswap32(v);
}

}  // namespace

void Sha256::block(const std::byte* p) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i) w[i] = big_endian(p + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15];
    const uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                        ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const uint32_t t2 =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<uint32_t, 8> now = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += now[i];
}

void Sha256::add(Bytes bytes) {
  total_ += bytes.size();
  if (part_size_ > 0) {
    const size_t n = std::min(bytes.size(), part_.size() - part_size_);
    std::copy_n(bytes.begin(), n, part_.begin() + static_cast<ptrdiff_t>(part_size_));
    part_size_ += n;
    bytes = bytes.subspan(n);
    if (part_size_ < part_.size()) return;
    block(part_.data());
    part_size_ = 0;
  }
  for (; bytes.size() >= part_.size(); bytes = bytes.subspan(part_.size())) block(bytes.data());
  std::copy(bytes.begin(), bytes.end(), part_.begin());
  part_size_ = bytes.size();
}

std::string Sha256::hex() {
  const uint64_t bits = __builtin_bswap64(total_ * 8);
  std::array<std::byte, 72> tail{};
  tail[0] = std::byte{0x80};
  const size_t zeros = (part_size_ < 56 ? 56 : 120) - part_size_;
  add(Bytes(tail).first(zeros));
  add(bytes_of(bits));
  std::string text;
  for (const uint32_t v : state_) text += fmt::format("{:08x}", v);
  return text;
}

}  // namespace pteryx::convert

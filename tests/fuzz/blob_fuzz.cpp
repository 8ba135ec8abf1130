// libFuzzer target: the graph of a delegate. The first blob inside the input counts, so that whole
// programs serve as seeds; what looks like the key of a constant gets data.
// SPDX-License-Identifier: BSD-3-Clause
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "check.h"
#include "input.h"

#include "pteryx/program/testing/alone.h"

namespace {

using pteryx::Bytes;

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

pteryx::program::NamedData data_for_keys(std::string_view text) {
  constexpr size_t kKey = 64;  // hexadecimal digits of a SHA-256
  pteryx::program::NamedData named;
  size_t run = 0;
  for (size_t i = 0; i < text.size() && named.size() < 256; ++i) {
    run = is_hex(text[i]) ? run + 1 : 0;
    if (run != kKey) continue;
    named[std::string(text.substr(i + 1 - kKey, kKey))].data = {1, 0, 1 << 20};
    run = 0;
  }
  return named;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const size_t magic = text.find("VH00"); magic != std::string_view::npos && magic >= 4) {
    text.remove_prefix(magic - 4);
  }
  const pteryx::fuzz::Input input(text.data(), text.size());
  const auto blob = pteryx::program::testing::parse_blob(input.bytes(), data_for_keys(text));
  if (!blob.ok() && !pteryx::fuzz::is_refusal(blob.status())) std::abort();
  return 0;
}

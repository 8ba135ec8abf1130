// SPDX-License-Identifier: BSD-3-Clause
#include "text.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <fmt/format.h>

namespace pteryx::cli {
namespace {

// Room for any prompt, and an end for a device that has none.
constexpr size_t kLongestText = size_t{64} << 20;

}  // namespace

Result<std::string> read_text(const std::string& path) {
  const auto failed = [&](int error) {
    return io_error(fmt::format("{}: {}", path == "-" ? "stdin" : path,
                                std::generic_category().message(error)));
  };
  struct Close {
    void operator()(std::FILE* f) const {
      if (f != stdin) std::fclose(f);
    }
  };
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin
                                                           : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return failed(errno);
  std::string text;
  std::array<char, 1 << 16> part{};
  while (const size_t n = std::fread(part.data(), 1, part.size(), file.get())) {
    text.append(part.data(), n);
    if (text.size() > kLongestText) {
      return invalid_argument(
          fmt::format("{}: expected a text of at most {} MiB", path, kLongestText >> 20));
    }
  }
  if (std::ferror(file.get()) != 0) return failed(errno);
  return text;
}

}  // namespace pteryx::cli

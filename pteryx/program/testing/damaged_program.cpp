// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/program/testing/damaged_program.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

namespace pteryx::program::testing {
namespace {

constexpr size_t kSegmentBase =
    24;                            // in the extended header: u64, where the delegate's blob starts
constexpr size_t kConstants = 18;  // in the blob's header: u32, where its constants start

template <typename T>
T read(const std::string& file, size_t at) {
  if (at + sizeof(T) > file.size()) std::abort();
  T v;
  std::memcpy(&v, &file[at], sizeof(T));
  return v;
}

}  // namespace

DamagedProgram::DamagedProgram(const std::string& original)
    : path_((std::filesystem::temp_directory_path() /
             fmt::format("pteryx_damaged_{}.pte", static_cast<const void*>(this)))
                .string()) {
  std::ifstream in(original, std::ios::binary);
  std::string file(std::istreambuf_iterator<char>(in), {});
  const auto blob = read<uint64_t>(file, kSegmentBase);
  if (file.compare(blob + 4, 4, "VH00") != 0) std::abort();
  constexpr uint32_t kNan = 0x7FC00000;
  for (size_t at = blob + read<uint32_t>(file, blob + kConstants); at + 4 <= file.size(); at += 4) {
    std::memcpy(&file[at], &kNan, 4);
  }
  std::ofstream(path_, std::ios::binary) << file;
}

DamagedProgram::~DamagedProgram() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace pteryx::program::testing

// What stands before the graph of a delegate blob. SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "pteryx/program/delegate.h"
#include "pteryx/program/testing/alone.h"
#include "pteryx/program/testing/build.h"
#include "pteryx/program/testing/expect.h"

namespace pteryx::program {
namespace {

using testing::BlobBuilder;
using testing::expect_invalid;
using testing::FileBytes;
using testing::parse_blob;

// Offsets of the header's fields.
constexpr size_t kMagic = 4;
constexpr size_t kHeaderSize = 8;
constexpr size_t kGraphOffset = 10;
constexpr size_t kGraphSize = 14;
constexpr size_t kBytesOffset = 18;
constexpr size_t kBytesSize = 22;
constexpr size_t kGraph = 32;

const NamedData kNothing;

FileBytes small() {
  BlobBuilder b;
  b.add_tensor();
  return FileBytes(b.finish());
}

TEST(BlobHeader, RefusesOtherBlobs) {
  expect_invalid(parse_blob(FileBytes(""), kNothing),
                 "delegate blob is not a Vulkan graph: 0 bytes");
  expect_invalid(parse_blob(small().first(29), kNothing),
                 "delegate blob is not a Vulkan graph: 29 bytes");
  expect_invalid(parse_blob(small().put<char>(kMagic, 'X'), kNothing),
                 "delegate blob is not a Vulkan graph (magic 'XH00')");
}

TEST(BlobHeader, RefusesSizes) {
  expect_invalid(parse_blob(small().put<uint16_t>(kHeaderSize, 29), kNothing),
                 "delegate header size 29: expected 30 to 32");
  expect_invalid(parse_blob(small().put<uint16_t>(kHeaderSize, 33), kNothing),
                 "delegate header size 33: expected 30 to 32");
}

TEST(BlobHeader, RefusesRegions) {
  const FileBytes file = small();
  const std::string n = std::to_string(file.size());
  const std::string size = std::to_string(*read_at<uint32_t>(file, kGraphSize));
  const std::string bytes_offset = std::to_string(*read_at<uint32_t>(file, kBytesOffset));
  expect_invalid(parse_blob(small().put<uint32_t>(kGraphOffset, 0xFFFFFFFF), kNothing),
                 "delegate header: region [4294967295, +" + size + ") exceeds blob of " + n);
  expect_invalid(parse_blob(small().put<uint32_t>(kGraphSize, 0xFFFFFFFF), kNothing),
                 "delegate header: region [32, +4294967295) exceeds blob of " + n);
  expect_invalid(parse_blob(small().put<uint32_t>(kBytesOffset, 40), kNothing),
                 "delegate header: constants at 40 overlap the graph [32, +" + size + ")");
  expect_invalid(
      parse_blob(small().put<uint64_t>(kBytesSize, ~uint64_t{0}), kNothing),
      "delegate header: region [" + bytes_offset + ", +18446744073709551615) exceeds blob of " + n);
  expect_invalid(parse_blob(small().put<uint32_t>(kBytesOffset, 0xFFFFFFFF), kNothing),
                 "delegate header: region [4294967295, +0) exceeds blob of " + n);
}

TEST(BlobHeader, RefusesGraphs) {
  expect_invalid(parse_blob(small().put<char>(kGraph + 4, 'X'), kNothing),
                 "delegate graph identifier 'XK00' != 'VK00'");
  expect_invalid(parse_blob(small().put<uint32_t>(kGraphSize, 7), kNothing),
                 "delegate graph identifier '' != 'VK00'");
  expect_invalid(parse_blob(small().put<uint32_t>(kGraph, 0x7FFFFFFF), kNothing),
                 "delegate graph is corrupt (FlatBuffer verification failed)");
}

}  // namespace
}  // namespace pteryx::program

// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/gpu/native/blob_cache.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "pteryx/gpu/testing/compute.h"

namespace pteryx::gpu {
namespace {

namespace fs = std::filesystem;
using native::BlobCache;

constexpr uint64_t kMuch = uint64_t{1} << 30;

Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

class Kept : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    std::error_code none;
    for (const auto& file : fs::directory_iterator(folder_, none)) all.push_back(file.path());
    return all;
  }
  std::unique_ptr<BlobCache> open(std::string_view maker = "dawn 1", uint64_t limit = kMuch) const {
    return BlobCache::open(folder_.string(), maker, limit);
  }
  static std::string text_at(BlobCache& cache, std::string_view key) {
    const auto value = cache.find(bytes_of(key));
    if (!value) return "none";
    return {reinterpret_cast<const char*>(value->data()), value->size()};
  }

  const fs::path folder_ =
      fs::temp_directory_path() / ("pteryx_blob_test_" + std::to_string(std::random_device()()));
};

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void put(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST_F(Kept, EntriesOutliveTheirCache) {
  open()->keep(bytes_of("key"), bytes_of("value"));
  const auto again = open();
  EXPECT_EQ(text_at(*again, "key"), "value");
  EXPECT_EQ(text_at(*again, "kez"), "none");
  EXPECT_EQ(again->found(), 1U);
  EXPECT_EQ(text_at(*open("dawn 2"), "key"), "none") << "another version made it";
  again->keep(bytes_of("key"), bytes_of("other"));
  EXPECT_EQ(text_at(*open(), "key"), "other");
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(Kept, DamageIsNoEntry) {
  open()->keep(bytes_of("key"), bytes_of("a value of some length"));
  const fs::path file = files().at(0);
  const std::string whole = content(file);
  const auto cache = open();
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    put(file, damaged);
    EXPECT_EQ(text_at(*cache, "key"), "none") << "byte " << i;
    put(file, whole.substr(0, i));
    EXPECT_EQ(text_at(*cache, "key"), "none") << i << " bytes";
  }
  put(file, whole + "x");
  EXPECT_EQ(text_at(*cache, "key"), "none");
  put(file, whole);
  EXPECT_EQ(text_at(*cache, "key"), "a value of some length");
}

TEST_F(Kept, WhatWasUsedLongestAgoGoes) {
  const std::string value(1000, 'v');
  const auto now = fs::file_time_type::clock::now();
  {
    const auto cache = open();
    for (int i = 0; i < 8; ++i) cache->keep(bytes_of(std::to_string(i)), bytes_of(value));
  }
  for (const fs::path& file : files()) fs::last_write_time(file, now - std::chrono::hours(100));
  EXPECT_EQ(text_at(*open(), "3"), value);  // used now
  put(folder_ / "left.blob.0123.partial", "x");
  fs::last_write_time(folder_ / "left.blob.0123.partial", now - std::chrono::hours(100));
  open("dawn 1", 4500)->keep(bytes_of("new"), bytes_of(value));
  const auto cache = open();
  EXPECT_EQ(text_at(*cache, "3"), value);
  EXPECT_EQ(text_at(*cache, "new"), value);
  EXPECT_EQ(files().size(), 3U);
}

TEST_F(Kept, WhereItCannotBeNothingIsKept) {
  put(folder_, "a file");
  EXPECT_EQ(open(), nullptr);
  EXPECT_EQ(BlobCache::open((folder_ / "in a file").string(), "dawn 1", kMuch), nullptr);
  fs::remove(folder_);
  const auto cache = open();
  ASSERT_NE(cache, nullptr);
  fs::remove_all(folder_);
  cache->keep(bytes_of("key"), bytes_of("value"));
  EXPECT_EQ(text_at(*cache, "key"), "none");
  EXPECT_EQ(cache->kept(), 0U);
}

constexpr std::string_view kDouble = R"(
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = y[0] * 2u; }
)";

// What a device kept and found while it doubled a number.
Counters double_with(const DeviceOptions& options) {
  const auto device = open_or_die(options);
  constexpr BindingKind kBindings[] = {BindingKind::kStorageReadWrite};
  const PipelineId pipeline = pipeline_or_die(
      *device, {.label = "double", .code = kDouble, .constants = {}, .bindings = kBindings});
  const std::array<uint32_t, 1> x = {21};
  const BufferId y = buffer_with(*device, std::as_bytes(std::span(x)));
  const Binding binding = {.buffer = y};
  const Dispatch d = {.pipeline = pipeline,
                      .bindings = bindings_or_die(*device, pipeline, {&binding, 1})};
  EXPECT_TRUE(device->submit({&d, 1}, {}).ok());
  EXPECT_EQ(values_from<uint32_t>(*device, y, 1).at(0), 42U);
  EXPECT_TRUE(device->take_error().ok());
  return device->counters();
}

TEST_F(Kept, ASecondDeviceFindsWhatTheFirstCompiled) {
  const DeviceOptions options = {.pipeline_cache = {.folder = folder_.string()}};
  const Counters first = double_with(options);
  if (open_or_die()->caps().provider == "wgpu") {
    EXPECT_EQ(first.blobs_kept, 0U);
    return;
  }
  EXPECT_GT(first.blobs_kept, 0U);
  EXPECT_EQ(first.blobs_found, 0U);
  const Counters second = double_with(options);
  EXPECT_GT(second.blobs_found, 0U);
  EXPECT_EQ(second.blobs_kept, 0U);
  for (const fs::path& file : files()) {
    std::string damaged = content(file);
    damaged[damaged.size() / 2] = static_cast<char>(~damaged[damaged.size() / 2]);
    put(file, damaged);
  }
  const Counters third = double_with(options);
  EXPECT_EQ(third.blobs_found, 0U);
  EXPECT_EQ(third.blobs_kept, first.blobs_kept);
  EXPECT_EQ(double_with(options).blobs_found, second.blobs_found);
}

TEST_F(Kept, DevicesShareAFolderAtOnce) {
  const DeviceOptions options = {.pipeline_cache = {.folder = folder_.string()}};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&] { double_with(options); });
  for (std::thread& t : threads) t.join();
  for (const fs::path& file : files()) EXPECT_EQ(file.extension(), ".blob");
}

TEST_F(Kept, ADeviceWorksWithoutTheFolder) {
  put(folder_, "a file");
  const Counters c = double_with({.pipeline_cache = {.folder = folder_.string()}});
  EXPECT_EQ(c.blobs_kept + c.blobs_found, 0U);
}

}  // namespace
}  // namespace pteryx::gpu

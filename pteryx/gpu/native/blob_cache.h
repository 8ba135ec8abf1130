// What a WebGPU library made of shaders, kept in a folder from process to process.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"
#include "pteryx/gpu/hasher.h"

namespace pteryx::gpu::native {

// A file for each entry, named after its key; it appears whole, so that processes need not know of
// each other, and has a checksum: what is damaged, or not ours, is not there. Nothing here fails:
// without the folder nothing is found or kept. Thread-safe.
class BlobCache {
 public:
  // Null where the folder is not this user's alone, or cannot be written. `maker` is part of every
  // key: what made the entries, with its version. Above `limit` bytes, entries used longest ago go.
  static std::unique_ptr<BlobCache> open(const std::string& folder, std::string_view maker,
                                         uint64_t limit);
  ~BlobCache();  // makes room if something was kept

  struct Content {
    uint64_t entries = 0;
    uint64_t bytes = 0;
  };
  // What is in a folder, whoever made it; nothing where there is no such folder.
  static Content content_of(const std::string& folder);
  // Removes that, and what was only begun. Errors: kIo.
  static Status clear(const std::string& folder);

  std::optional<std::vector<std::byte>> find(Bytes key);
  void keep(Bytes key, Bytes value);

  // For Dawn's device descriptor; `cache` is a BlobCache. The size of an entry, 0 if there is none;
  // with room for it, it is copied there.
  static size_t load(size_t key_size, const uint8_t* key, size_t value_size, uint8_t* value,
                     void* cache, void* /*unused*/);
  static void store(size_t key_size, const uint8_t* key, size_t value_size, const uint8_t* value,
                    void* cache, void* /*unused*/);

  uint64_t found() const { return found_; }
  uint64_t kept() const { return kept_; }

 private:
  BlobCache(std::string folder, std::string_view maker, uint64_t limit)
      : folder_(std::move(folder)), maker_(maker), limit_(limit) {}
  Hash128 name_of(Bytes key) const;
  std::string path_of(const Hash128& name) const;
  void make_room() const;

  const std::string folder_;
  const std::string maker_;
  const uint64_t limit_;
  std::atomic<uint64_t> found_ = 0;
  std::atomic<uint64_t> kept_ = 0;
  std::atomic<bool> full_ = false;  // the disk, or whatever else keeps from writing
  // Dawn asks twice: for the size, then for the bytes.
  std::mutex mutex_;
  Hash128 asked_;
  std::vector<std::byte> answer_;
};

}  // namespace pteryx::gpu::native

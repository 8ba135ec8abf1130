// Conversions that are kept: programs made of model files that are not programs.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "progress.h"

#include "pteryx/base/status.h"

namespace pteryx::cli {

// An open file or folder, closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

// A folder of ours alone (0700). An entry is KEY.pte, where the key is made of what the source
// holds and of the converter's version, with KEY.json beside it: where it came from, and the
// fingerprint by which damage is found. Entries used longest ago go first when there are too many
// bytes.
class Cache {
 public:
  // The folder that the environment names: PTERYX_CACHE, XDG_CACHE_HOME, HOME. Errors: kIo where
  // there is none, or it belongs to somebody else.
  static Result<Cache> open();

  struct Entry {
    std::string path;
    std::string source;
    uint64_t bytes = 0;
    int64_t used = 0;  // seconds since 1970
  };
  std::vector<Entry> list() const;  // the one used last first
  // Removes all entries and whatever else of ours is there.
  Status clear() const;
  const std::string& folder() const { return folder_; }
  uint64_t limit() const { return limit_; }

 private:
  friend class Conversion;
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}
  // One conversion at a time, while the descriptor is open. Errors: kIo, kCancelled.
  Result<Descriptor> lock() const;
  void remove(const std::string& program) const;
  void make_room(const std::string& newest) const;
  void remove_leftovers() const;

  std::string folder_;
  uint64_t limit_ = 0;
};

// The program of a source, from the cache or converted now.
class Conversion {
 public:
  // Without a cache the program is a temporary file, and a note says so. Errors: those of
  // convert::convert, kCancelled.
  static Result<Conversion> of(const std::string& source, Progress& progress);
  Conversion(Conversion&& other) noexcept;
  Conversion& operator=(Conversion&&) = delete;
  ~Conversion();  // removes a temporary file

  const std::string& program() const { return program_; }
  bool was_kept() const { return was_kept_; }
  // Makes the program anew: what was kept cannot be used.
  Status repeat(Progress& progress);

 private:
  Conversion() = default;
  Status make(Progress& progress);

  std::string source_;
  std::string program_;
  std::string temporary_;     // folder, where there is no cache
  std::vector<Cache> cache_;  // one or none
  bool was_kept_ = false;
};

}  // namespace pteryx::cli

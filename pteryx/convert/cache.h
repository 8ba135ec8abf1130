// Conversions that are kept: programs made of model files that are not programs.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pteryx/base/status.h"

namespace pteryx::convert {

inline constexpr uint64_t kUsualCacheLimit = uint64_t{32} << 30;

struct CacheOptions {
  std::string folder = {};            // made where it is not there; empty: nothing is kept
  uint64_t limit = kUsualCacheLimit;  // bytes
  // Where a conversion is made that cannot be kept; empty: it is refused. A folder on a disk:
  // models are large.
  std::string temporary = {};
  uint32_t threads = 0;  // as ConvertOptions has it
};

// A folder of one user alone (0700). An entry is KEY.pte, where the key is made of what the source
// holds and of the converter's version, with KEY.json beside it: where it came from, and the
// fingerprint by which damage is found. Entries used longest ago go first when there are too many
// bytes.
class Cache {
 public:
  // Errors: kIo where the folder cannot be used, or belongs to somebody else.
  static Result<Cache> open(const CacheOptions& options);

  struct Entry {
    std::string path;
    std::string source;
    uint64_t bytes = 0;
    int64_t used = 0;  // seconds since 1970
  };
  std::vector<Entry> list() const;  // the one used last first
  // Removes all entries and whatever else of ours is there. Errors: kIo.
  Status clear() const;
  const std::string& folder() const { return folder_; }
  uint64_t limit() const { return limit_; }

 private:
  friend class ProgramFile;
  Cache(std::string folder, uint64_t limit) : folder_(std::move(folder)), limit_(limit) {}
  // Where the program of a source is, or would be. Errors: kIo, those of source_files.
  Result<std::string> program_of(const std::string& source) const;
  // Whether that program is there as it was written; it then counts as used now.
  bool use(const std::string& program) const;
  // Before a program is written, by the one who has the lock: removes what is in its place and what
  // others left behind.
  void make_way(const std::string& program) const;
  // After that: the program becomes an entry, and others go if there are too many bytes.
  Status keep(const std::string& program, const std::string& source) const;

  std::string folder_;
  uint64_t limit_;
};

}  // namespace pteryx::convert

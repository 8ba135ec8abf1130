// Where bytes come from: a file, or memory. Read by position, so that nothing is mapped and a file
// that shrinks meanwhile is an error, not a crash.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx {

// Immutable; reads from several threads need no lock.
class Source {
 public:
  explicit Source(std::string name) : name_(std::move(name)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  const std::string& name() const { return name_; }  // for messages: the path of a file
  virtual uint64_t size() const = 0;                 // when it was opened
  // Fills all of `out`. Errors: kIo, also where the source ends before that.
  virtual Status read(uint64_t offset, MutableBytes out) const = 0;

 protected:
  // The error of a read that found the end at `end`.
  Status ended(uint64_t end, uint64_t offset, uint64_t size) const;

 private:
  std::string name_;
};
using SourcePtr = std::shared_ptr<const Source>;

// A regular file. Errors: kIo with the path and the system's reason.
Result<SourcePtr> open_source(const std::string& path);

// Bytes that outlive it.
class MemorySource final : public Source {
 public:
  MemorySource(std::string name, Bytes bytes) : Source(std::move(name)), bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Status read(uint64_t offset, MutableBytes out) const override;

 private:
  Bytes bytes_;
};

// All bytes of a source that should be small. Errors: kIo, kInvalidProgram above `most_bytes`.
Result<std::string> read_all(const Source& source, uint64_t most_bytes);
Result<std::string> read_all(const std::string& path, uint64_t most_bytes);

}  // namespace pteryx

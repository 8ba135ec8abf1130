// Where bytes come from: a file, memory, a download. Asked for by position, they are there now or
// later, so that nobody waits for them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/status.h"

namespace pteryx {

// Bytes as the script around a WebAssembly module has them.
struct HostRange {
  uint32_t source = 0;
  uint64_t offset = 0;
};

// Immutable; reads from several threads need no lock.
class Source {
 public:
  explicit Source(std::string name) : name_(std::move(name)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  const std::string& name() const { return name_; }  // for messages: the path of a file
  virtual uint64_t size() const = 0;                 // when it was opened
  // Fills all of `out`, or says false: the bytes are on their way, ask for the same again. Errors:
  // kIo, also where the source ends before that.
  virtual Result<bool> read(uint64_t offset, MutableBytes out) const = 0;
  // The bytes where they lie, for as long as the source lives; none if they have to be read, or
  // lie outside.
  virtual std::optional<Bytes> view(uint64_t /*offset*/, uint64_t /*size*/) const { return {}; }

  // Where the script around the module has them, so that they reach a GPU without passing through
  // the module's memory; none natively, or where they lie outside.
  virtual std::optional<HostRange> host_range(uint64_t /*offset*/, uint64_t /*size*/) const {
    return {};
  }

  // For those who cannot come back: kIo, too, where the bytes are not there yet.
  Status read_now(uint64_t offset, MutableBytes out) const;

 protected:
  // The error of a read that found the end at `end`.
  Status ended(uint64_t end, uint64_t offset, uint64_t size) const;

 private:
  std::string name_;
};
using SourcePtr = std::shared_ptr<const Source>;

// A regular file, read by position: one that shrinks meanwhile is an error. Errors: kIo with the
// path and the system's reason.
Result<SourcePtr> open_source(const std::string& path);
// The same file in memory, without reading it. One that shrinks meanwhile raises SIGBUS.
Result<SourcePtr> map_source(const std::string& path);

// Bytes that outlive it.
class MemorySource final : public Source {
 public:
  MemorySource(std::string name, Bytes bytes) : Source(std::move(name)), bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<bool> read(uint64_t offset, MutableBytes out) const override;
  std::optional<Bytes> view(uint64_t offset, uint64_t size) const override;

 private:
  Bytes bytes_;
};

// Some of another's bytes. The range lies inside.
class RangeSource final : public Source {
 public:
  RangeSource(SourcePtr whole, uint64_t offset, uint64_t size)
      : Source(whole->name()), whole_(std::move(whole)), offset_(offset), size_(size) {}
  uint64_t size() const override { return size_; }
  Result<bool> read(uint64_t offset, MutableBytes out) const override;
  std::optional<Bytes> view(uint64_t offset, uint64_t size) const override;
  std::optional<HostRange> host_range(uint64_t offset, uint64_t size) const override;

 private:
  SourcePtr whole_;
  uint64_t offset_;
  uint64_t size_;
};

// All bytes of a source that should be small and there. Errors: kIo, kInvalidProgram above
// `most_bytes`.
Result<std::string> read_all(const Source& source, uint64_t most_bytes);
Result<std::string> read_all(const std::string& path, uint64_t most_bytes);

// Some bytes of one of several sources: what data is known by before it is read.
struct ByteRange {
  uint32_t source = 0;
  uint64_t offset = 0;
  uint64_t size = 0;

  friend auto operator<=>(const ByteRange&, const ByteRange&) = default;
};
// Sub-range, nullopt if it is not wholly inside.
inline std::optional<ByteRange> slice(const ByteRange& range, uint64_t offset, uint64_t size) {
  if (!in_range(offset, size, range.size)) return std::nullopt;
  return ByteRange{range.source, range.offset + offset, size};
}

// The bytes of a range in memory: where they lie if that is possible, else copied.
class FetchedBytes {
 public:
  // `alignment` of the first byte, at most 16.
  FetchedBytes(SourcePtr source, uint64_t offset, uint64_t size, size_t alignment);

  // True once bytes() are there. Errors: kIo.
  Result<bool> advance();
  Bytes bytes() const { return bytes_; }

 private:
  struct alignas(16) Block {
    std::byte bytes[16];
  };

  SourcePtr source_;
  uint64_t offset_;
  uint64_t size_;
  size_t alignment_;
  bool there_ = false;
  Bytes bytes_;
  std::vector<Block> copy_;
};

}  // namespace pteryx

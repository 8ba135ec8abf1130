// Lets code that cannot wait read from a source that makes one wait: it starts over until
// everything it asks for is there. For headers and other small things.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/base/status.h"

namespace pteryx::convert {

// Of one thread.
class ReplayedSource final : public Source {
 public:
  explicit ReplayedSource(SourcePtr source) : Source(source->name()), source_(std::move(source)) {}

  uint64_t size() const override { return source_->size(); }
  // False where the bytes are not held: fetch() gets them, then whoever asked starts over.
  Result<bool> read(uint64_t offset, MutableBytes out) const override;

  // Whether a read since the last fetch() found its bytes missing.
  bool lacks_bytes() const { return missing_.has_value(); }
  // True once what was missing is held. From the start of the source it gets ahead of what was
  // asked for, so that a header takes few rounds. Errors: kIo.
  Result<bool> fetch();
  // Holds nothing any more.
  void forget();
  // The same, and from now on reads are the source's own.
  void pass_through();

 private:
  struct Range {
    uint64_t offset = 0, size = 0;
  };
  SourcePtr source_;
  bool passes_ = false;
  std::vector<std::byte> head_;                        // the first bytes of the source
  uint64_t held_ = 0;                                  // of those, how many are there
  std::map<uint64_t, std::vector<std::byte>> others_;  // by their offset
  mutable std::optional<Range> missing_;
};

}  // namespace pteryx::convert

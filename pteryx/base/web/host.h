// What the script around the module answers with, and sources of bytes that it has. Addresses and
// sizes are of the module's memory; what may exceed 32 bits travels as a double, which is exact up
// to 2^53.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pteryx/base/source.h"
#include "pteryx/base/status.h"

#define PTERYX_IMPORT(name) __attribute__((import_module("pteryx"), import_name(#name)))

namespace pteryx::web {

// How the script answers a question about something that takes time. Above kDone: a Code.
enum class Answer : int32_t { kLater = -1, kDone = 0 };

// True once it is done. Errors: what the script says, whose text it hands over at once.
Result<bool> settle(Answer answer);

// Bytes that the script has under a number: a file, a download. Released with the last who holds
// it.
class HostSource final : public Source {
 public:
  HostSource(uint32_t id, std::string name, uint64_t size)
      : Source(std::move(name)), id_(id), size_(size) {}
  ~HostSource() override;
  uint64_t size() const override { return size_; }
  Result<bool> read(uint64_t offset, MutableBytes out) const override;
  std::optional<HostRange> host_range(uint64_t offset, uint64_t size) const override;

 private:
  uint32_t id_;
  uint64_t size_;
};

}  // namespace pteryx::web

// Calls of a delegate, inlined: its blob's values and nodes become the graph's.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/graph/build/addresses.h"
#include "pteryx/graph/build/emitter.h"
#include "pteryx/program/delegate.h"
#include "pteryx/program/program.h"

namespace pteryx::graph {

class Delegates {
 public:
  Delegates(const program::Program& program, const program::MethodRecord& method, Emitter& out,
            Addresses& addresses)
      : program_(program), method_(method), out_(out), addresses_(addresses) {}

  // Reads the blobs of all delegates. Errors: those of parse_blob, kUnsupported for another
  // backend.
  Status parse();
  std::span<const program::Blob> blobs() const { return blobs_; }
  Status inline_call(const program::DelegateCall& call);

 private:
  struct Inlining {
    const program::Blob& blob;
    const program::DelegateCall& call;
    std::vector<ValueId> map;  // blob value -> graph value
    std::vector<bool> mutated;
  };

  bool is_tensor(uint32_t i) const {
    return std::holds_alternative<program::TensorRecord>(method_.values[i]);
  }
  std::vector<bool> find_mutated(const program::Blob& blob) const;
  Status bind_input(Inlining& in, size_t i);
  Result<bool> bind_output(Inlining& in, size_t i);
  void move_output(ValueId from, ValueId to);
  Status add_blob_values(Inlining& in);
  Status add_blob_call(Inlining& in, const program::BlobCall& call);
  Status prepack(Inlining& in, const program::BlobCall& call);

  const program::Program& program_;
  const program::MethodRecord& method_;
  Emitter& out_;
  Addresses& addresses_;
  std::vector<program::Blob> blobs_;
  // Of each delegate, which may be called more than once: blob value -> graph value.
  using Shared = std::unordered_map<uint32_t, std::unordered_map<uint32_t, ValueId>>;
  Shared blob_constants_;
  Shared blob_prepacked_;
  uint64_t inlining_left_ = 0;
};

}  // namespace pteryx::graph

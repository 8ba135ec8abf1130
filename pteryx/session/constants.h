// Constants of a program: in host memory, and on the GPU.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <compare>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pteryx/base/source.h"
#include "pteryx/graph/graph.h"
#include "pteryx/ops/op.h"
#include "pteryx/pteryx.h"
#include "pteryx/session/owned.h"

namespace pteryx {

// What makes two constants the same: the same bytes, meaning the same.
struct ConstantId {
  std::vector<ByteRange> data;
  DType dtype = DType::kF32;
  std::vector<uint8_t> dim_order;  // of the bytes, with the dims it is of; empty: row-major
  std::vector<int64_t> dims;

  explicit ConstantId(const graph::Tensor& t);
  friend auto operator<=>(const ConstantId&, const ConstantId&) = default;
};

// The bytes of a constant in host memory, dense and row-major: where they lie if they are so, else
// a copy.
class ConstantBytes {
 public:
  ConstantBytes(const graph::Tensor& t, std::span<const SourcePtr> sources);

  // True once bytes() are there. Errors: kIo.
  Result<bool> advance();
  Status read_now();
  Bytes bytes() const { return bytes_; }

 private:
  void join();
  void to_row_major();

  std::vector<FetchedBytes> parts_;
  Dims dims_;
  size_t element_bytes_;
  std::vector<uint8_t> dim_order_;
  bool there_ = false;
  Bytes bytes_;
  std::vector<std::max_align_t> memory_;
};

// Constants on the GPU, shared by every method of a session.
class ConstantPool {
 public:
  ConstantPool(std::shared_ptr<gpu::Device> device, std::vector<SourcePtr> sources)
      : device_(std::move(device)), sources_(std::move(sources)) {}
  std::span<const SourcePtr> sources() const { return sources_; }
  // Uploads `t` or finds it. Progress counts bytes.
  Result<gpu::BufferId> upload(const graph::Tensor& t, std::string_view label,
                               const LoadOptions& options);
  // The same bytes in another layout, made from the uploaded buffer by its dispatch, or found.
  Result<gpu::BufferId> relaid(const graph::Tensor& t, gpu::BufferId source,
                               const ops::PlannedConstant& wanted);
  void set_total(uint64_t bytes) { total_ = bytes; }

 private:
  Status write_parts(const graph::Tensor& t, gpu::BufferId buffer, const LoadOptions& options);
  Status count(uint64_t bytes, const LoadOptions& options);

  std::shared_ptr<gpu::Device> device_;
  std::vector<SourcePtr> sources_;
  std::map<ConstantId, OwnedBuffer> buffers_;
  std::map<std::pair<ConstantId, std::string>, OwnedBuffer> relaid_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace pteryx

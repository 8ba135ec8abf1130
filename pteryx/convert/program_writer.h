// Writes a .pte of one delegated method, its constant methods and its blobs.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "pteryx/base/bytes.h"
#include "pteryx/base/dims.h"
#include "pteryx/base/dtype.h"
#include "pteryx/base/status.h"
#include "pteryx/convert/matrix.h"
#include "pteryx/convert/model.h"
#include "pteryx/convert/vk_graph.h"

namespace pteryx::convert {

// A tensor at the method's boundary; the last dim may be smaller when dynamic.
struct Boundary {
  DType type = DType::kF32;
  Dims dims;
  bool dynamic = false;
};

// A method without inputs that answers with constants.
struct Constants {
  std::string name;
  std::vector<std::variant<int64_t, bool>> values;
};

struct ProgramSpec {
  VkGraph graph;
  std::vector<Blob> blobs;  // what the graph's constants are of, named by their SHA-256
  std::vector<Boundary> inputs, outputs;
  std::string input_tree;  // how the inputs nested in the Python call, as PyTorch writes it
  std::vector<Constants> constants;
  std::vector<Attachment> attachments;
};

// How far it is; false stops.
using Progress = std::function<bool(uint64_t done, uint64_t total)>;

// Where a program goes: bytes at any places, from several threads at once. What lies between is
// zeros.
class ProgramOutput {
 public:
  virtual ~ProgramOutput() = default;
  virtual Status write_at(uint64_t offset, Bytes bytes) = 0;
};

class ProgramWriter;

// Blobs of one maker on their way into the program.
class ProgramPiece {
 public:
  ProgramPiece(ProgramWriter& writer, size_t blob);
  ~ProgramPiece();

  uint64_t size() const { return size_; }  // bytes
  // Writes some of it; true once it is all written. Errors: those of the blobs and of the output.
  Result<bool> advance();

 private:
  friend class ProgramWriter;
  class BlobSink;

  ProgramWriter& writer_;
  uint64_t size_ = 0;
  std::vector<size_t> blobs_ = {};  // in order; those at the front are done
  size_t next_ = 0;
  std::unique_ptr<BlobSink> sink_;  // of the blob that is being written
};

// Pieces are written in any order, then the rest by finish(); the bytes depend on neither order nor
// threads.
class ProgramWriter {
 public:
  // The output outlives it.
  ProgramWriter(ProgramSpec spec, ProgramOutput& output);
  ProgramWriter(const ProgramWriter&) = delete;
  ProgramWriter& operator=(const ProgramWriter&) = delete;
  ~ProgramWriter();

  std::vector<ProgramPiece*> pieces();  // in the order of the file
  Status finish();

  uint64_t data_bytes() const { return data_bytes_; }
  uint64_t written() const { return written_; }  // of those
  uint64_t file_bytes() const { return base_ + data_bytes_; }

 private:
  friend class ProgramPiece;
  struct Segment {
    uint64_t offset = 0, size = 0;
  };
  class Builder;

  ProgramSpec spec_;
  ProgramOutput& output_;
  std::vector<std::string> keys_;  // of the blobs
  std::vector<Segment> segments_ = {{0, 0}};
  uint64_t base_ = 0;  // where the segments begin
  uint64_t data_bytes_ = 0;
  std::vector<std::unique_ptr<ProgramPiece>> pieces_;
  std::atomic<uint64_t> written_ = 0;
};

}  // namespace pteryx::convert

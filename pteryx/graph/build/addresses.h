// What planned memory holds. The exporter leaves out views of planned tensors: both values then
// have the same address, and reading one means the bytes that the other wrote.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pteryx/base/status.h"
#include "pteryx/graph/build/emitter.h"
#include "pteryx/program/program.h"

namespace pteryx::graph {

// What a method has in common with others of its program.
struct Sharing {
  std::set<uint32_t> memories;   // planned memories of which there is one for all
  std::set<SharedPlace> states;  // places there that some method keeps from run to run
};

class Addresses {
 public:
  // All of these outlive it.
  Addresses(const program::MethodRecord& method, const Sharing& sharing, Emitter& out)
      : method_(method), sharing_(sharing), out_(out) {}

  // Before the first instruction: inputs and initial values are where they are.
  void place_initial();
  // Makes sure that method value i holds what its address holds. Errors: kInvalidProgram where that
  // is a tensor of another size or type.
  Status before_read(uint32_t i);
  void after_write(uint32_t i);
  // In-place results may carry another value's id: brings them home.
  void write_back_state();

 private:
  using Address = std::pair<uint32_t, uint64_t>;
  struct Writer {
    uint32_t value = 0;
    uint32_t sequence = 0;
  };
  const program::TensorRecord* planned(uint32_t value) const;
  static Address address(const program::TensorRecord& t);
  void make_state(uint32_t i);

  const program::MethodRecord& method_;
  const Sharing& sharing_;
  Emitter& out_;
  std::map<Address, Writer> latest_;
  std::unordered_map<uint32_t, uint32_t>
      viewed_;  // value -> sequence of the writer it is a view of
  std::vector<uint32_t> states_;
  uint32_t sequence_ = 0;
};

}  // namespace pteryx::graph

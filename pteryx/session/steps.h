// Steps of a language model that run ahead of the caller: the token of one is the input of the
// next, without leaving the GPU. For sessions loaded with LoadOptions::sampling.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "pteryx/ops/sample/sample.h"
#include "pteryx/pteryx.h"

namespace pteryx {

class Steps {
 public:
  // At most `depth` steps are under way; one, where the method does not run on the GPU in one
  // piece. `session` must outlive it. Errors: kUnsupported where the method cannot sample.
  static Result<Steps> open(Session& session, std::string_view method, uint32_t depth);

  void set(const ops::SampleSettings& settings) { settings_ = settings.words(); }
  // Brings tokens into the caches and draws nothing. Waits for nothing.
  Status feed(std::span<const int64_t> tokens, int64_t position);
  // Starts a step with these tokens, the first at `position`; it draws the token after them.
  Status start(std::span<const int64_t> tokens, int64_t position);
  // The same with the token that the step started before it draws.
  Status start_next(int64_t position);
  // The token of the oldest step under way; waits for it. Errors: kInvalidProgram where the logits
  // are not finite, as of run().
  Result<int32_t> take();
  // Waits for the steps under way, whose tokens nobody wants.
  Status discard();
  // A step that is waited for, with the logits that its token was drawn from.
  struct Drawn {
    int32_t token = 0;
    std::span<const float> logits;  // until the next step
    std::span<const float> all;     // of every position, with LoadOptions::all_logits
  };
  Result<Drawn> run(std::span<const int64_t> tokens, int64_t position);
  uint32_t under_way() const;
  int64_t capacity() const;  // positions
  uint32_t depth() const { return depth_; }

 private:
  Steps(Method& method, uint32_t depth, bool ahead)
      : method_(&method), depth_(depth), ahead_(ahead), drawn_at_(depth) {}
  std::array<Value, 3> inputs(std::span<const int64_t> tokens);
  void note_start(size_t tokens);
  Result<int32_t> finish();

  Method* method_;
  uint32_t depth_;
  bool ahead_;            // steps run ahead; else start() waits for its token
  int32_t last_ = 0;      // the token of the last step, where steps do not run ahead
  bool waiting_ = false;  // it was not taken yet
  std::array<int32_t, ops::SampleSettings::kWords> settings_ = ops::SampleSettings{}.words();
  int64_t position_ = 0;
  std::vector<int64_t> drawn_at_;  // positions of the logits of steps under way, a ring
  size_t started_ = 0;             // steps so far
};

}  // namespace pteryx

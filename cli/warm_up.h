// What a GPU does before it is measured. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include "pteryx/base/status.h"
#include "pteryx/gpu/caps.h"

namespace pteryx::cli {

// Whether calls take as long as they will: after some tenths of a second of them, once those of a
// tenth are no faster than those before, and at the latest after two seconds.
class Settling {
 public:
  // Takes the time of one more call; true: it is enough.
  bool add(double seconds);

 private:
  double total_ = 0;
  double part_ = 0;         // of the tenth at hand
  double part_best_ = 0;    // fastest call of it; 0: there was none
  double before_best_ = 0;  // of those before
};

// GPUs that had nothing to do, as while shaders compile, run at a low clock and take a while to
// raise it.
class WarmUp {
 public:
  explicit WarmUp(const gpu::Caps& caps) : once_(caps.software || caps.cpu) {}

  // Asked for the first time, repeats what is to be measured first until its time has settled; on a
  // CPU or a software GPU, where nobody waits for a clock to rise, calls it once. Afterwards does
  // nothing. Errors: those of the call, kCancelled.
  Status once(const std::function<Status()>& call);

 private:
  bool once_;
  bool done_ = false;
};

}  // namespace pteryx::cli

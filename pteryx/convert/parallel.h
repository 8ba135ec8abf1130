// Work of a conversion on several threads. SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "pteryx/base/status.h"

namespace pteryx::convert {

using Stopped = std::function<bool()>;
// One piece of work. It asks `stopped` now and then, and ends with kCancelled if it says so.
using Work = std::function<Status(size_t i, const Stopped& stopped)>;

// Pieces 0 to count - 1, begun in this order on so many threads. One is the caller's own, which
// asks `proceed` (null: yes) whenever a piece begins or asks; more are others, and the caller's
// asks some times a second. No is kCancelled. After an error nothing more is begun; of several
// errors, the one of the first piece counts.
Status run_parallel(size_t count, uint32_t threads, const Work& work,
                    const std::function<bool()>& proceed);

// Advances a job until it is done, which nothing keeps waiting. Errors: the job's, kCancelled.
template <typename Job>
Status finish_now(Job& job, const Stopped& stopped) {
  for (;;) {
    if (stopped()) return {Code::kCancelled, "interrupted"};
    PTERYX_ASSIGN(const bool done, job.advance());
    if (done) return {};
  }
}

// As many threads as were asked for; 0: as many as this process may use cores, and as so many
// bytes are worth.
uint32_t threads_for(uint32_t wanted, uint64_t bytes);

}  // namespace pteryx::convert

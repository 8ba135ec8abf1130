// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/host_constants.h"

namespace pteryx {

void HostConstants::add(const graph::Graph& g, const Layout& layout) {
  for (const Root& r : layout.roots) {
    if (!r.host || !r.constant || r.state) continue;
    const graph::Tensor& t = *g.tensor(r.value);
    if (!t.data.empty() && t.data.front().source >= files_) {
      for (const ByteRange& range : t.data) made_.add(range);
      continue;
    }
    const uint64_t copied = ConstantBytes::copied_bytes(t, sources_);
    copied_ += copied;
    if (copied > 0) continue;
    for (const ByteRange& range : t.data) in_place_.add(range);
  }
}

}  // namespace pteryx

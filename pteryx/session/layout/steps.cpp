// What runs, moves and is waited for, in order. SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "pteryx/session/layout/stages.h"

namespace pteryx::layout {
namespace {

using graph::index;
using graph::ValueId;

class Steps : Stage {
 public:
  using Stage::Stage;

  // Walks the nodes of a block with, for each root, whether the host and the GPU hold its present
  // contents. GPU nodes gather in a span. What one of them lacks is uploaded, behind the span so
  // far if that used the root; what a CPU node lacks closes the span and is downloaded with it. The
  // end of the block brings everything where the next block, the next run or the caller looks for
  // it.
  void compile_steps(Block& b) {
    Valid valid = valid_at_entry(b);
    Span span;
    std::vector<bool> in_span(l_.roots.size());
    std::vector<uint32_t> changed;  // roots this block wrote, or brought in
    const auto close = [&](const std::vector<uint32_t>& downloads) {
      if (span.nodes.empty() && downloads.empty()) return;
      b.steps.push_back({Step::Kind::kSubmit, static_cast<uint32_t>(b.spans.size()), downloads});
      b.spans.push_back(std::move(span));
      span = {};
      in_span.assign(l_.roots.size(), false);
      if (!downloads.empty()) b.steps.push_back({Step::Kind::kDownload, 0, downloads});
      for (const uint32_t r : downloads) {
        valid.host[r] = true;
        downloaded_.insert(r);
      }
    };
    const auto upload = [&](uint32_t r) {
      if (in_span[r]) close({});
      b.steps.push_back({Step::Kind::kUpload, r, {}});
      valid.gpu[r] = true;
      uploaded_.insert(r);
    };
    for (uint32_t i = b.begin; i < b.end; ++i) {
      if (l_.place[i] == Place::kGpu) {
        each_read(i, [&](ValueId id) {
          if (!valid.gpu[root(id)] && valid.host[root(id)]) upload(root(id));
        });
        each_read(i, [&](ValueId id) { in_span[root(id)] = true; });
        each_write(i, [&](ValueId id) {
          in_span[root(id)] = valid.gpu[root(id)] = true;
          valid.host[root(id)] = false;
          changed.push_back(root(id));
        });
        span.nodes.push_back(i);
      } else if (l_.place[i] == Place::kCpu) {
        std::vector<uint32_t> downloads;
        each_read(i, [&](ValueId id) {
          const uint32_t r = root(id);
          if (valid.host[r] || !valid.gpu[r]) return;
          if (std::find(downloads.begin(), downloads.end(), r) == downloads.end())
            downloads.push_back(r);
        });
        if (!downloads.empty()) {
          add_finished_outputs(i, valid, downloads);
          close(downloads);
        }
        b.steps.push_back({Step::Kind::kHost, i, {}});
        each_write(i, [&](ValueId id) {
          valid.host[root(id)] = true;
          valid.gpu[root(id)] = false;
          changed.push_back(root(id));
        });
      }
    }
    finish_block(b, valid, changed, close, upload);
  }

  bool is_one_stretch() const {
    if (l_.blocks.size() != 1 || l_.blocks[0].spans.size() != 1) return false;
    const auto& steps = l_.blocks[0].steps;
    return std::none_of(steps.begin(), steps.end(),
                        [](const Step& s) { return s.kind == Step::Kind::kHost; });
  }

 private:
  // Of each root: who holds its present contents.
  struct Valid {
    std::vector<bool> host, gpu;
  };

  Valid valid_at_entry(const Block& b) const {
    Valid v{std::vector<bool>(l_.roots.size()), std::vector<bool>(l_.roots.size())};
    const bool first = &b == &l_.blocks.front();
    for (size_t i = 0; i < l_.roots.size(); ++i) {
      const Root& r = l_.roots[i];
      const bool shared = r.cross_block && (r.state || !first || r.constant);
      const bool at_home = r.state && !r.cross_block;  // between runs
      v.host[i] = r.constant || (shared && r.host) || (at_home && !r.gpu) || (r.input && first);
      v.gpu[i] = r.constant || (shared && r.gpu) || (at_home && r.gpu);
    }
    return v;
  }

  // Outputs that no later node writes go along with a download that happens anyway: one wait less.
  void add_finished_outputs(uint32_t node, const Valid& valid,
                            std::vector<uint32_t>& downloads) const {
    if (l_.blocks.size() > 1) return;
    for (const ValueId id : g_.outputs) {
      if (g_.tensor(id) == nullptr) continue;
      const uint32_t r = root(id);
      const uint32_t writer = producer_[index(l_.roots[r].value)];
      if (valid.host[r] || !valid.gpu[r] || writer == kNone || writer > node) continue;
      if (std::find(downloads.begin(), downloads.end(), r) == downloads.end())
        downloads.push_back(r);
    }
  }

  // At the end of a block: outputs on the host, state at home, shared values wherever they are
  // used.
  void finish_block(const Block& b, const Valid& valid, std::vector<uint32_t>& changed,
                    const auto& close, const auto& upload) {
    const bool last = &b == &l_.blocks.back();
    if (&b == &l_.blocks.front()) {
      for (const ValueId id : g_.inputs) {
        if (g_.tensor(id) != nullptr && l_.roots[root(id)].cross_block) changed.push_back(root(id));
      }
    }
    if (last && l_.blocks.size() == 1) {
      for (const ValueId id : g_.outputs) {
        if (g_.tensor(id) != nullptr) changed.push_back(root(id));
      }
    }
    std::set<uint32_t> once(changed.begin(), changed.end());
    std::vector<uint32_t> downloads;
    for (const uint32_t i : once) {
      const Root& r = l_.roots[i];
      const bool output = last && l_.blocks.size() == 1 && is_output(i);
      const bool want_host = output || (r.cross_block && r.host) || (r.state && !r.gpu);
      if (want_host && !valid.host[i] && valid.gpu[i]) downloads.push_back(i);
    }
    for (const uint32_t i : once) {
      const Root& r = l_.roots[i];
      const bool want_gpu = r.gpu && (r.cross_block || r.state);
      if (want_gpu && !valid.gpu[i] && valid.host[i]) upload(i);
    }
    close(downloads);
  }

  bool is_output(uint32_t r) const {
    return std::any_of(g_.outputs.begin(), g_.outputs.end(),
                       [&](ValueId id) { return g_.tensor(id) != nullptr && root(id) == r; });
  }
};

}  // namespace

void compile_steps(Draft& d) {
  Steps steps(d);
  for (Block& b : d.l.blocks) steps.compile_steps(b);
  d.l.one_stretch = steps.is_one_stretch();
}

}  // namespace pteryx::layout

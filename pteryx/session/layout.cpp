// Decides where every node runs and what memory every value has. SPDX-License-Identifier:
// BSD-3-Clause
#include "pteryx/session/layout.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "pteryx/ops/schema.h"
#include "pteryx/ops/table.h"

namespace pteryx {
namespace {

using graph::Graph;
using graph::index;
using graph::kNoValue;
using graph::ValueId;
using ops::OpClass;

// Bytes of a tensor in a GPU buffer: i64 is held as i32.
uint64_t gpu_bytes(const graph::Tensor& t) {
  const uint64_t element = t.dtype == DType::kI64 ? 4 : size_bytes(t.dtype);
  return align_up(static_cast<uint64_t>(numel(t.max)) * element, 16);
}

class Maker {
 public:
  Maker(const Graph& g, const ops::PlanContext& context, const LayoutOptions& options)
      : g_(g), context_(context), options_(options) {}

  Result<Layout> make() && {
    PTERYX_TRY(resolve());
    bound_live();
    PTERYX_TRY(check_shapes());
    PTERYX_TRY(place_nodes());
    find_roots();
    split_blocks();
    mark_roots();
    find_index_limits();
    for (Block& b : l_.blocks) {
      find_keys(b);
      PTERYX_TRY(compile_steps(b));
    }
    l_.one_stretch = is_one_stretch();
    assign_memory();
    PTERYX_TRY(plan_scratch());
    return std::move(l_);
  }

 private:
  // ---- operators

  std::string describe_call(const graph::Node& n) const {
    std::string text = graph::describe(g_, n) + "(";
    bool first = true;
    for (const ValueId id : n.args) {
      for_each_tensor(g_, id, [&](ValueId t) {
        text += fmt::format("{}{}{}", first ? "" : ", ", name(g_.tensor(t)->dtype),
                            to_string(g_.tensor(t)->max));
        first = false;
      });
    }
    return text + ")";
  }

  // A call that cannot run, and why.
  struct Problem {
    std::string_view op;
    std::string text;
  };

  // A line for each operator, those with the most calls first, with the first of its problems.
  Status list_unsupported(const std::vector<Problem>& calls) const {
    struct Line {
      size_t count = 0;
      const Problem* first = nullptr;
    };
    std::vector<Line> lines;
    for (const Problem& p : calls) {
      auto at = std::ranges::find_if(lines, [&](const Line& l) { return l.first->op == p.op; });
      if (at == lines.end()) at = lines.insert(at, {0, &p});
      ++at->count;
    }
    std::ranges::stable_sort(lines, std::greater(), &Line::count);
    const auto counted = [](size_t n) { return fmt::format("{} call{}", n, n == 1 ? "" : "s"); };
    std::string text =
        fmt::format("method '{}' has {} that Pteryx cannot run:", g_.method, counted(calls.size()));
    for (const Line& l : lines)
      text += fmt::format("\n  {} of {}: {}", counted(l.count), l.first->op, l.first->text);
    return unsupported(text);
  }

  Status resolve() {
    std::vector<Problem> unknown;
    for (const graph::Node& n : g_.nodes) {
      const bool op = n.kind == graph::Node::Kind::kOp;
      if (op && n.op == nullptr)
        unknown.push_back({n.spelling, "unknown operator " + describe_call(n)});
      l_.defs.push_back(op && n.op != nullptr ? &ops::op(*n.op) : nullptr);
    }
    // Report type problems together with unknown names, so that one load shows all of them.
    std::optional<Status> first_error;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (l_.defs[i] == nullptr) continue;
      Status s = ops::check_schema(g_, g_.nodes[i], *l_.defs[i]);
      if (s.ok()) continue;
      if (s.code() == Code::kUnsupported)
        unknown.push_back({g_.nodes[i].spelling, std::string(s.message())});
      else if (!first_error)
        first_error = std::move(s);
    }
    if (first_error) return std::move(*first_error);
    if (!unknown.empty()) return list_unsupported(unknown);
    return {};
  }

  // ---- shapes at the bound

  void bound_live() {
    l_.bound.dims.resize(g_.values.size());
    l_.bound.scalars.resize(g_.values.size());
    for (uint32_t i = 0; i < g_.values.size(); ++i) {
      if (const auto* t = std::get_if<graph::Tensor>(&g_.values[i])) l_.bound.dims[i] = t->max;
      if (const auto* s = std::get_if<graph::LiveScalar>(&g_.values[i])) {
        l_.bound.scalars[i] = {s->kind, s->initial_int, s->initial_double};
      }
    }
    for (const ValueId id : g_.inputs) {
      const auto* t = g_.tensor(id);
      if (t != nullptr && t->dynamic) l_.is_static = false;
    }
  }

  bool reads_unknown(const graph::Node& n, const std::vector<bool>& unknown) const {
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      if (unknown[index(n.args[a])]) return true;
      if (const auto* list = std::get_if<graph::ValueList>(&g_[n.args[a]])) {
        for (const ValueId id : list->items) {
          if (id != kNoValue && unknown[index(id)]) return true;
        }
      }
    }
    return false;
  }

  // Every node's shape rule at the bound. Results that hang on data of a run cannot be checked
  // here.
  Status check_shapes() {
    hangs_on_data_.resize(g_.nodes.size());
    if (g_.has_jumps) return {};
    std::vector<bool> unknown(g_.values.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const graph::Node& n = g_.nodes[i];
      const ops::OpDef& def = *l_.defs[i];
      if (def.op_class == OpClass::kItem ||
          reads_unknown(n, unknown)) {  // scalars, or dims that follow from them
        hangs_on_data_[i] = true;
        unknown[index(n.args.back())] = true;
        for_each_tensor(g_, n.args.back(), [&](ValueId id) { unknown[index(id)] = true; });
        continue;
      }
      const ops::Node node(g_, n, def, l_.bound);
      ops::Shapes shapes(node, l_.bound);
      PTERYX_TRY(def.shape(node, shapes));
      if (l_.is_static) PTERYX_TRY(expect_bound(node));
    }
    return {};
  }

  Status expect_bound(const ops::Node& n) const {
    Status status;
    for_each_tensor(g_, n.node().args.back(), [&](ValueId id) {
      const Dims& got = l_.bound.dims[index(id)];
      if (status.ok() && got != g_.tensor(id)->max) {
        status = n.fail(Code::kInvalidProgram,
                        fmt::format("{} ({}) shape: the file says {}, the inputs give {}",
                                    n.def().args.back().name, g_.label(id),
                                    to_string(g_.tensor(id)->max), to_string(got)));
      }
    });
    return status;
  }

  // ---- placement

  Status place_nodes() {
    std::vector<Problem> nowhere;
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      const ops::OpDef* def = l_.defs[i];
      Place p = Place::kNothing;
      if (def == nullptr) {
        p = Place::kNothing;
      } else if (def->op_class == OpClass::kScalar) {
        p = Place::kScalar;
      } else if (def->op_class == OpClass::kItem) {
        p = Place::kItem;
      } else {
        const ops::Node n(g_, g_.nodes[i], *def, l_.bound);
        const bool gpu = ops::runs_on_gpu(n);
        const bool cpu = def->cpu != nullptr;
        p = gpu && !(options_.cpu_only && cpu) ? Place::kGpu : Place::kCpu;
        if (!gpu && !cpu)
          nowhere.push_back(
              {g_.nodes[i].spelling, "no kernel for these types: " + describe_call(g_.nodes[i])});
      }
      l_.place.push_back(p);
    }
    if (!nowhere.empty()) return list_unsupported(nowhere);
    return {};
  }

  // ---- memory identity

  void each_read(size_t i, const auto& visit) const {
    const graph::Node& n = g_.nodes[i];
    const size_t count = l_.defs[i] == nullptr ? n.args.size() : n.args.size() - 1;
    for (size_t a = 0; a < count; ++a) for_each_tensor(g_, n.args[a], visit);
  }
  void each_write(size_t i, const auto& visit) const {
    if (l_.defs[i] == nullptr) return;
    const graph::Node& n = g_.nodes[i];
    for_each_tensor(g_, n.args.back(), visit);
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      if (l_.defs[i]->args[a].mutated) for_each_tensor(g_, n.args[a], visit);
    }
  }

  // A value that more than its one producer writes must not have views: they would change under
  // their readers.
  std::vector<bool> find_mutable() const {
    std::vector<uint8_t> writes(g_.values.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      each_write(i, [&](ValueId id) {
        writes[index(id)] = static_cast<uint8_t>(std::min(writes[index(id)] + 1, 2));
      });
    }
    std::vector<bool> changing(g_.values.size());
    for (uint32_t v = 0; v < g_.values.size(); ++v) {
      const auto* t = std::get_if<graph::Tensor>(&g_.values[v]);
      if (t != nullptr) changing[v] = t->state || writes[v] > 1;
    }
    for (const ValueId id : g_.inputs)
      changing[index(id)] = changing[index(id)] || writes[index(id)] > 0;
    return changing;
  }

  void find_roots() {
    const std::vector<bool> changing = find_mutable();
    l_.root_of.assign(g_.values.size(), kNone);
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      if (l_.defs[i] == nullptr || l_.defs[i]->op_class != OpClass::kView) continue;
      const ValueId from = g_.nodes[i].args[0];
      const ValueId to = g_.nodes[i].args.back();
      const graph::Tensor* t = g_.tensor(to);
      if (changing[index(from)] || changing[index(to)] || t->has_data() || g_.has_jumps ||
          t->dtype != g_.tensor(from)->dtype) {
        continue;
      }
      l_.root_of[index(to)] = root_for(from);
      l_.place[i] = Place::kNothing;
    }
    for (uint32_t v = 0; v < g_.values.size(); ++v) {
      if (std::holds_alternative<graph::Tensor>(g_.values[v])) root_for(ValueId{v});
    }
    for (uint32_t v = 0; v < g_.values.size(); ++v) {
      const auto* t = std::get_if<graph::Tensor>(&g_.values[v]);
      if (t == nullptr) continue;
      Root& r = l_.roots[l_.root_of[v]];
      r.gpu_bytes = std::max(r.gpu_bytes, gpu_bytes(*t));
      r.host_bytes =
          std::max(r.host_bytes, static_cast<uint64_t>(numel(t->max)) * size_bytes(t->dtype));
    }
  }

  uint32_t root_for(ValueId id) {
    uint32_t& r = l_.root_of[index(id)];
    if (r != kNone) return r;
    r = static_cast<uint32_t>(l_.roots.size());
    const graph::Tensor& t = *g_.tensor(id);
    l_.roots.push_back({.value = id, .constant = t.is_constant(), .state = t.state});
    return r;
  }

  uint32_t root(ValueId id) const { return l_.root_of[index(id)]; }

  // ---- blocks

  // The method input that holds the same elements as `id` does before `node`, through copies and
  // views; kNoValue if there is none. A value that is written later, too, is not looked through:
  // `producer_` knows its last writer only.
  ValueId trace_to_input(ValueId id, uint32_t node) const {
    for (;;) {
      if (std::find(g_.inputs.begin(), g_.inputs.end(), id) != g_.inputs.end()) {
        return l_.roots[root(id)].written ? kNoValue : id;
      }
      const uint32_t p = producer_[index(id)];
      if (p == kNone || p >= node || l_.defs[p] == nullptr) return kNoValue;
      const bool view = l_.defs[p]->op_class == OpClass::kView;
      if (!view && g_.nodes[p].op->name != graph::kCopyOp) return kNoValue;
      id = g_.nodes[p].args[0];
      node = p;
    }
  }

  bool has_live_scalar_args(size_t i) const {
    const graph::Node& n = g_.nodes[i];
    for (size_t a = 0; a + 1 < n.args.size(); ++a) {
      if (std::holds_alternative<graph::LiveScalar>(g_[n.args[a]])) return true;
    }
    return false;
  }

  void split_blocks() {
    producer_.assign(g_.values.size(), kNone);
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      each_write(i, [&](ValueId id) {
        producer_[index(id)] = i;
        l_.roots[root(id)].written = true;
      });
    }
    l_.item_source.assign(g_.nodes.size(), kNone);
    std::set<uint32_t> starts = {0};
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (g_.nodes[i].kind == graph::Node::Kind::kJumpFalse) {
        starts.insert(i + 1);
        starts.insert(g_.nodes[i].target);
      }
      if (l_.place[i] != Place::kItem) continue;
      const ValueId x = g_.nodes[i].args[0];
      const ValueId input = g_.has_jumps ? kNoValue : trace_to_input(x, i);
      const bool known = g_.tensor(x)->is_constant();
      l_.item_source[i] = input != kNoValue ? root(input) : root(x);
      if ((input == kNoValue && !known) || has_live_scalar_args(i)) starts.insert(i);
      l_.roots[l_.item_source[i]].host = true;
    }
    split_at_rewrites(starts);
    const auto count = static_cast<uint32_t>(g_.nodes.size());
    starts.insert(count);
    for (auto it = starts.begin(); *it != count; ++it) {
      Block b;
      b.begin = *it;
      b.end = *std::next(it);
      for (uint32_t i = b.begin; i < b.end; ++i) {
        if (l_.place[i] == Place::kItem) b.items.push_back(i);
        if (g_.nodes[i].kind == graph::Node::Kind::kJumpFalse) b.jump = i;
      }
      l_.blocks.push_back(std::move(b));
    }
    if (l_.blocks.empty())
      l_.blocks.emplace_back();  // a method without instructions still has outputs
  }

  // Loop counters: within a block a scalar has one value, so a block ends before one that was read
  // is written.
  void split_at_rewrites(std::set<uint32_t>& starts) const {
    std::vector<bool> used(g_.values.size());
    std::vector<uint32_t> list;
    const auto use = [&](ValueId id) {
      if (id == kNoValue || !std::holds_alternative<graph::LiveScalar>(g_[id]) || used[index(id)])
        return;
      used[index(id)] = true;
      list.push_back(index(id));
    };
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      const graph::Node& n = g_.nodes[i];
      if (l_.defs[i] == nullptr) continue;
      if (used[index(n.args.back())]) starts.insert(i);
      if (starts.contains(i)) {
        for (const uint32_t v : list) used[v] = false;
        list.clear();
      }
      for (const ValueId id : n.args) {
        use(id);
        if (const auto* members = std::get_if<graph::ValueList>(&g_[id])) {
          for (const ValueId m : members->items) use(m);
        }
      }
    }
  }

  void mark_roots() {
    for (const ValueId id : g_.inputs) {
      if (g_.tensor(id) == nullptr) continue;
      Root& r = l_.roots[root(id)];
      r.input = r.host = true;
    }
    for (const ValueId id : g_.outputs) {
      if (g_.tensor(id) != nullptr) l_.roots[root(id)].host = true;
    }
    l_.changes_state.resize(g_.nodes.size());
    std::vector<uint32_t> seen(l_.roots.size(), kNone);
    for (uint32_t b = 0; b < l_.blocks.size(); ++b) {
      for (uint32_t i = l_.blocks[b].begin; i < l_.blocks[b].end; ++i) {
        const auto touch = [&](ValueId id) {
          Root& r = l_.roots[root(id)];
          if (l_.place[i] == Place::kGpu) r.gpu = true;
          if (l_.place[i] == Place::kCpu) r.host = true;
          if (seen[root(id)] != kNone && seen[root(id)] != b) r.cross_block = true;
          seen[root(id)] = b;
        };
        each_read(i, touch);
        each_write(i, touch);
        if (l_.place[i] == Place::kGpu) {
          each_write(i, [&](ValueId id) { l_.roots[root(id)].gpu_written = true; });
        }
        each_write(i, [&](ValueId id) {
          if (l_.roots[root(id)].state) l_.changes_state[i] = true;
        });
        if (l_.item_source[i] != kNone && l_.item_source[i] != root(g_.nodes[i].args[0])) continue;
      }
    }
    if (l_.blocks.size() > 1) {
      for (const ValueId id : g_.inputs) {
        if (g_.tensor(id) != nullptr) l_.roots[root(id)].cross_block = true;
      }
      for (const ValueId id : g_.outputs) {
        if (g_.tensor(id) != nullptr) l_.roots[root(id)].cross_block = true;
      }
    }
  }

  // Indices that come straight from an input are checked on the host, before the GPU sees them.
  void find_index_limits() {
    if (g_.has_jumps) return;
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      for (size_t a = 0; a < l_.defs[i]->args.size(); ++a) {
        const std::optional<uint8_t> table = l_.defs[i]->args[a].rows_of;
        if (!table) continue;
        const ValueId input = trace_to_input(g_.nodes[i].args[a], i);
        if (input == kNoValue) continue;
        const auto at = std::find(g_.inputs.begin(), g_.inputs.end(), input);
        l_.index_limits.push_back({static_cast<uint32_t>(at - g_.inputs.begin()),
                                   g_.tensor(g_.nodes[i].args[*table])->max[0], i});
      }
    }
  }

  // What decides the shapes of a block: tensors made elsewhere, scalars made elsewhere or read from
  // tensors.
  void find_keys(Block& b) const {
    std::vector<bool> inside(g_.values.size());
    std::vector<bool> taken(g_.values.size());
    std::vector<bool> loose(g_.values.size());  // scalars that other input sizes do not decide
    bool reads_loose = false;
    const auto use = [&](ValueId id) {
      reads_loose = reads_loose || loose[index(id)];
      if (inside[index(id)] || taken[index(id)]) return;
      const auto* t = g_.tensor(id);
      if (t != nullptr && !t->is_constant()) {
        b.key_tensors.push_back(id);
        taken[index(id)] = true;
      } else if (std::holds_alternative<graph::LiveScalar>(g_[id])) {
        b.key_scalars.push_back(id);
        taken[index(id)] = loose[index(id)] = reads_loose = true;
      }
    };
    for (uint32_t i = b.begin; i < b.end; ++i) {
      const graph::Node& n = g_.nodes[i];
      if (l_.defs[i] == nullptr) continue;
      reads_loose = false;
      for (size_t a = 0; a + 1 < n.args.size(); ++a) {
        if (const auto* list = std::get_if<graph::ValueList>(&g_[n.args[a]])) {
          for (const ValueId id : list->items) {
            if (id != kNoValue) use(id);
          }
        } else {
          use(n.args[a]);
        }
      }
      if (l_.place[i] == Place::kItem) {
        use(n.args.back());
        continue;
      }
      if (reads_loose) {
        b.scalar_nodes.push_back(i);
        loose[index(n.args.back())] = std::holds_alternative<graph::LiveScalar>(g_[n.args.back()]);
      }
      inside[index(n.args.back())] = true;
      for_each_tensor(g_, n.args.back(), [&](ValueId id) { inside[index(id)] = true; });
    }
    // Values of a whole method are also decided by inputs that no node reads.
    for (const ValueId id : g_.inputs) {
      if (&b == &l_.blocks.front()) use(id);
    }
  }

  // ---- steps

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

  Status compile_steps(Block& b) {
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
    return {};
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

  bool is_one_stretch() const {
    if (l_.blocks.size() != 1 || l_.blocks[0].spans.size() != 1) return false;
    const auto& steps = l_.blocks[0].steps;
    return std::none_of(steps.begin(), steps.end(),
                        [](const Step& s) { return s.kind == Step::Kind::kHost; });
  }

  bool is_output(uint32_t r) const {
    return std::any_of(g_.outputs.begin(), g_.outputs.end(),
                       [&](ValueId id) { return g_.tensor(id) != nullptr && root(id) == r; });
  }

  // ---- buffers

  // Private: anything that outlives its nodes or is written by the queue.
  bool needs_own_buffer(uint32_t i) const {
    const Root& r = l_.roots[i];
    return r.constant || r.state || r.input || r.cross_block || uploaded_.contains(i) ||
           g_.has_jumps;
  }

  // Small tensors from the host go where the live scalars are, so that one write brings everything
  // a run needs.
  // Smallest first: a write ends with the last byte that is live.
  void fill_inbox() {
    constexpr uint64_t kSmall = 64U << 10;
    for (const graph::Value& v : g_.values) {
      const auto* scalar = std::get_if<graph::LiveScalar>(&v);
      if (scalar != nullptr && scalar->kind == graph::ScalarKind::kInt)
        l_.scalar_slots = std::max(l_.scalar_slots, scalar->slot + 1);
    }
    const uint64_t align = context_.caps.storage_alignment;
    l_.inbox_bytes = align_up(uint64_t{l_.scalar_slots} * 4, align);
    std::vector<uint32_t> small;
    for (uint32_t i = 0; i < l_.roots.size(); ++i) {
      const Root& r = l_.roots[i];
      if (uploaded_.contains(i) && !r.gpu_written && !r.state && r.gpu_bytes <= kSmall)
        small.push_back(i);
    }
    std::stable_sort(small.begin(), small.end(), [&](uint32_t a, uint32_t b) {
      return l_.roots[a].gpu_bytes < l_.roots[b].gpu_bytes;
    });
    for (const uint32_t i : small) {
      l_.roots[i].inbox = l_.inbox_bytes;
      l_.inbox_bytes += align_up(std::max<uint64_t>(l_.roots[i].gpu_bytes, 16), align);
    }
    l_.memory.activations += l_.inbox_bytes;
  }

  void assign_memory() {
    fill_inbox();
    std::vector<graph::Lifetime> lifetimes(l_.roots.size());
    for (auto& life : lifetimes) life.first = kNone;
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (l_.place[i] != Place::kGpu) continue;
      const auto touch = [&](ValueId id) {
        graph::Lifetime& life = lifetimes[root(id)];
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      };
      each_read(i, touch);
      each_write(i, touch);
    }
    extend_downloads(lifetimes);
    std::vector<uint32_t> shared;
    std::vector<graph::Lifetime> shared_lifetimes;
    for (uint32_t i = 0; i < l_.roots.size(); ++i) {
      Root& r = l_.roots[i];
      if (!r.gpu || r.inbox != kNoOffset) continue;
      if (needs_own_buffer(i)) {
        (r.constant ? l_.memory.constants
         : r.state  ? l_.memory.state
                    : l_.memory.activations) += std::max<uint64_t>(r.gpu_bytes, 16);
        continue;
      }
      lifetimes[i].bytes = std::max<uint64_t>(r.gpu_bytes, 16);
      shared.push_back(i);
      shared_lifetimes.push_back(lifetimes[i]);
    }
    const graph::SlotPlan plan = graph::assign_slots(shared_lifetimes);
    for (size_t k = 0; k < shared.size(); ++k) l_.roots[shared[k]].slot = plan.slot[k];
    l_.slot_bytes = plan.slot_bytes;
    l_.memory.activations += plan.total_bytes();
    for (const uint32_t r : downloaded_) {
      l_.roots[r].readback_offset = l_.readback_bytes;
      l_.readback_bytes += align_up(std::max<uint64_t>(l_.roots[r].gpu_bytes, 16), 8);
    }
    l_.memory.transfer = l_.readback_bytes;
    for (const Root& r : l_.roots) {
      if (r.host && !r.constant) l_.memory.host += r.host_bytes;
    }
  }

  // Plans every GPU node at the bound: finds what no route can do before any memory is taken, and
  // what temporaries cost. Temporary i of one node shares its buffer with temporary i of every
  // other.
  Status plan_scratch() {
    if (g_.has_jumps) return {};
    std::vector<uint64_t>& largest = l_.scratch_bytes;
    std::set<std::pair<std::vector<ByteRange>, std::string>> relaid;
    for (uint32_t i = 0; i < g_.nodes.size(); ++i) {
      if (l_.place[i] != Place::kGpu) continue;
      ops::Plan plan(context_);
      Status s = l_.defs[i]->plan(ops::Node(g_, g_.nodes[i], *l_.defs[i], l_.bound), plan);
      if (!s.ok() && hangs_on_data_[i]) continue;  // judged when the data are there
      PTERYX_TRY(std::move(s));
      if (plan.scratch_bytes.size() > largest.size()) largest.resize(plan.scratch_bytes.size());
      for (size_t k = 0; k < plan.scratch_bytes.size(); ++k)
        largest[k] = std::max(largest[k], plan.scratch_bytes[k]);
      for (const ops::PlannedConstant& c : plan.constants) {
        const bool first = relaid.emplace(g_.tensor(c.source)->data, c.layout).second;
        if (!first) continue;
        l_.memory.constants += c.size_bytes;
        l_.relaid.push_back({c.source, c.layout, c.size_bytes});
      }
    }
    for (const uint64_t bytes : largest) l_.memory.scratch += bytes;
    return {};
  }

  // A downloaded value must survive until the submit that copies it has run.
  void extend_downloads(std::vector<graph::Lifetime>& lifetimes) const {
    for (const Block& b : l_.blocks) {
      uint32_t last = b.begin;
      for (const Step& s : b.steps) {
        if (s.kind != Step::Kind::kSubmit) continue;
        if (!b.spans[s.index].nodes.empty()) last = b.spans[s.index].nodes.back();
        for (const uint32_t r : s.downloads) lifetimes[r].last = std::max(lifetimes[r].last, last);
      }
    }
  }

  const Graph& g_;
  const ops::PlanContext& context_;
  const LayoutOptions& options_;
  Layout l_;
  std::vector<uint32_t> producer_;
  std::vector<bool> hangs_on_data_;  // of each node: its shapes follow from data of a run
  std::set<uint32_t> uploaded_;
  std::set<uint32_t> downloaded_;
};

}  // namespace

Result<Layout> make_layout(const Graph& g, const ops::PlanContext& context,
                           const LayoutOptions& options) {
  auto layout = Maker(g, context, options).make();
  if (layout.ok() || layout.status().code() != Code::kInvalidArgument) return layout;
  // At the bound every size is the file's, so what would be the caller's fault in a run is its.
  return invalid_program(std::string(layout.status().message()));
}

}  // namespace pteryx

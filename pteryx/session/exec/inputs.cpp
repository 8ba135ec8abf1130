// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/session/exec/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace pteryx::exec {

using graph::index;
using graph::ValueId;

namespace {

std::string value_text(const graph::Value& v) {
  if (const auto* i = std::get_if<int64_t>(&v)) return std::to_string(*i);
  if (const auto* d = std::get_if<double>(&v)) return fmt::format("{}", *d);
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const auto* s = std::get_if<std::string>(&v)) return fmt::format("'{}'", *s);
  return "None";
}

std::string value_text(const Value& v) {
  if (const auto* t = v.tensor())
    return fmt::format("a {} tensor {}", name(t->dtype), to_string(t->dims));
  if (const auto* i = v.integer()) return std::to_string(*i);
  if (const auto* d = v.number()) return fmt::format("{}", *d);
  if (const auto* b = v.flag()) return *b ? "true" : "false";
  if (const auto* s = v.text()) return fmt::format("'{}'", *s);
  return "None";
}

// A scalar input was fixed when the program was exported; the caller must pass the same value.
bool same_scalar(const graph::Value& want, const Value& got) {
  const auto close = [](double a, double b) {
    return std::abs(a - b) <= 1e-4 + 1e-5 * std::abs(a);
  };
  if (const auto* i = std::get_if<int64_t>(&want)) {
    return (got.integer() != nullptr && *got.integer() == *i) ||
           (got.number() != nullptr && *got.number() == static_cast<double>(*i)) ||
           (got.flag() != nullptr && (*got.flag() ? 1 : 0) == *i);
  }
  if (const auto* d = std::get_if<double>(&want)) {
    return (got.number() != nullptr && close(*d, *got.number())) ||
           (got.integer() != nullptr && close(*d, static_cast<double>(*got.integer())));
  }
  if (const auto* b = std::get_if<bool>(&want)) {
    return (got.flag() != nullptr && *got.flag() == *b) ||
           (got.integer() != nullptr && (*got.integer() != 0) == *b);
  }
  if (const auto* s = std::get_if<std::string>(&want))
    return got.text() != nullptr && *got.text() == *s;
  return got.tensor() == nullptr;
}

// Types a caller may pass for a program type: the same, or one whose every value is checked or
// rounded on the way.
bool convertible(DType from, DType to) {
  if (from == to) return true;
  if (is_float(to)) return is_float(from);
  return to != DType::kBool && from != DType::kBool && !is_float(from);
}

// Smallest and largest value an integer type holds.
std::pair<int64_t, int64_t> range_of(DType t) {
  switch (t) {
    case DType::kU8: return {0, 255};
    case DType::kI8: return {-128, 127};
    case DType::kI16: return {-32768, 32767};
    case DType::kU16: return {0, 65535};
    case DType::kI32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case DType::kU32: return {0, std::numeric_limits<uint32_t>::max()};
    default: return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  }
}

// One call's inputs.
class Inputs {
 public:
  Inputs(const graph::Graph& g, const Layout& layout, ops::Live& live, Memory& memory)
      : graph_(g), layout_(layout), live_(live), memory_(memory) {}

  Status bind_all(std::span<const Value> inputs) {
    if (inputs.size() != graph_.inputs.size()) {
      return invalid_argument(fmt::format("method '{}' takes {} inputs, got {}", graph_.method,
                                          graph_.inputs.size(), inputs.size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId id = graph_.inputs[i];
      if (graph_.tensor(id) != nullptr) {
        if (inputs[i].tensor() == nullptr) {
          return invalid_argument(fmt::format("input {} of '{}': expected a tensor, got {}", i,
                                              graph_.method, value_text(inputs[i])));
        }
        PTERYX_TRY(bind_tensor(i, *inputs[i].tensor()));
      } else if (!same_scalar(graph_[id], inputs[i])) {
        return invalid_argument(
            fmt::format("input {} of '{}' was fixed to {} when the program was exported, got {}", i,
                        graph_.method, value_text(graph_[id]), value_text(inputs[i])));
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId id = graph_.inputs[i];
      const graph::Tensor* t = graph_.tensor(id);
      if (t == nullptr) continue;
      const ops::HostTensor x{t->dtype, live_.dims[index(id)], memory_.host_of(id)};
      PTERYX_TRY(check_known_indices(graph_, layout_, static_cast<uint32_t>(i), x));
    }
    return {};
  }

 private:
  Status bind_tensor(size_t i, const TensorView& v) {
    const ValueId id = graph_.inputs[i];
    const graph::Tensor& t = *graph_.tensor(id);
    const auto wrong = [&](std::string_view what, const std::string& expected,
                           const std::string& got) {
      return invalid_argument(fmt::format("input {} of '{}' {}: expected {}, got {}", i,
                                          graph_.method, what, expected, got));
    };
    if (!convertible(v.dtype, t.dtype))
      return wrong("type", std::string(name(t.dtype)), std::string(name(v.dtype)));
    if (v.dims.rank() != t.max.rank()) {
      return wrong("rank", fmt::format("{} ({})", t.max.rank(), to_string(t.max)),
                   fmt::format("{} ({})", v.dims.rank(), to_string(v.dims)));
    }
    for (size_t d = 0; d < v.dims.rank(); ++d) {
      const bool fits = t.dynamic
                            ? v.dims[d] >= std::min<int64_t>(1, t.max[d]) && v.dims[d] <= t.max[d]
                            : v.dims[d] == t.max[d];
      if (fits) continue;
      return wrong(fmt::format("dim {}", d),
                   t.dynamic ? fmt::format("1 to {}", t.max[d]) : std::to_string(t.max[d]),
                   fmt::format("{} ({})", v.dims[d], to_string(v.dims)));
    }
    const Dims strides = v.strides.empty() ? contiguous_strides(v.dims) : v.strides;
    if (strides.rank() != v.dims.rank())
      return wrong("strides", to_string(v.dims), to_string(strides));
    const int64_t n = numel(v.dims);
    uint64_t reach = 1;  // elements up to the last
    for (size_t d = 0; d < v.dims.rank(); ++d) {
      if (strides[d] < 0) return wrong("strides", "none negative", to_string(strides));
      reach = saturating_add(
          reach, saturating_mul(static_cast<uint64_t>(strides[d]),
                                static_cast<uint64_t>(std::max<int64_t>(v.dims[d] - 1, 0))));
    }
    const uint64_t needed = n == 0 ? 0 : saturating_mul<uint64_t>(reach, size_bytes(v.dtype));
    if (v.size_bytes < needed || (n > 0 && v.data == nullptr)) {
      return wrong("size", fmt::format("{} bytes", needed), fmt::format("{} bytes", v.size_bytes));
    }
    const uint32_t r = layout_.root_of[index(id)];
    live_.dims[index(id)] = v.dims;
    const bool dense = strides == contiguous_strides(v.dims);
    auto* data = static_cast<std::byte*>(const_cast<void*>(v.data));
    if (dense && v.dtype == t.dtype && !memory_.is_staged(r)) {
      memory_.borrow(r, data);  // read only: written roots are staged
      return {};
    }
    std::byte* const own = memory_.own(r);
    if (dense && v.dtype == t.dtype) {
      if (n > 0) std::memcpy(own, data, static_cast<size_t>(n) * size_bytes(t.dtype));
      return {};
    }
    return convert_input(i, v, strides, {t.dtype, v.dims, own});
  }

  // Element by element: other types, other strides.
  Status convert_input(size_t i, const TensorView& v, const Dims& strides,
                       const ops::HostTensor& to) const {
    const ops::HostTensor from{v.dtype, v.dims, static_cast<std::byte*>(const_cast<void*>(v.data))};
    const Dims dense = contiguous_strides(v.dims);
    const auto [lowest, highest] = range_of(to.dtype);
    const int64_t n = to.numel();
    for (int64_t k = 0; k < n; ++k) {
      int64_t at = 0;
      for (size_t d = 0; d < v.dims.rank(); ++d) at += k / dense[d] % v.dims[d] * strides[d];
      if (is_float(to.dtype)) {
        to.put(k, from.number(at));
        continue;
      }
      const int64_t value = from.integer(at);
      if (value < lowest || value > highest) {
        return invalid_argument(
            fmt::format("input {} of '{}': element {} is {}, which does not fit {}", i,
                        graph_.method, k, value, name(to.dtype)));
      }
      to.put_integer(k, value);
    }
    return {};
  }

  const graph::Graph& graph_;
  const Layout& layout_;
  ops::Live& live_;
  Memory& memory_;
};

Status check_index(const graph::Graph& g, const Layout& layout, const Layout::IndexLimit& limit,
                   const ops::HostTensor& x, int64_t extent) {
  const graph::Node& node = g.nodes[limit.node];
  const ops::OpDef& def = *layout.defs[limit.node];
  const ops::IndexBound& bound = *def.args[limit.at.arg].bound;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t v = x.integer(i);
    if (!ops::is_outside(bound, v, extent)) continue;
    return invalid_argument(
        fmt::format("input {} of '{}': {} in {}", limit.input, g.method,
                    ops::outside_text({g, node, def, layout.bound}, limit.at, i, v, extent),
                    graph::describe(g, node)));
  }
  return {};
}

}  // namespace

Status check_known_indices(const graph::Graph& g, const Layout& layout, uint32_t input,
                           const ops::HostTensor& x) {
  for (const Layout::IndexLimit& limit : layout.index_limits) {
    if (limit.input != input || !limit.extent) continue;
    PTERYX_TRY(check_index(g, layout, limit, x, *limit.extent));
  }
  return {};
}

Status check_live_indices(const graph::Graph& g, const Layout& layout, const Block& block,
                          const ops::Live& recorded, const ops::Live& live, const Memory& memory) {
  for (const Layout::IndexLimit& limit : layout.index_limits) {
    const bool inside = limit.node >= block.begin && limit.node < block.end;
    if (!limit.live || !inside) continue;
    const ops::Node n(g, g.nodes[limit.node], *layout.defs[limit.node], recorded);
    PTERYX_ASSIGN(const int64_t extent, ops::index_extent(n, limit.at));
    const ValueId id = g.inputs[limit.input];
    const ops::HostTensor x{g.tensor(id)->dtype, live.dims[index(id)], memory.host_of(id)};
    PTERYX_TRY(check_index(g, layout, limit, x, extent));
  }
  return {};
}

Status bind_inputs(const graph::Graph& g, const Layout& layout, std::span<const Value> inputs,
                   ops::Live& live, Memory& memory) {
  return Inputs(g, layout, live, memory).bind_all(inputs);
}

}  // namespace pteryx::exec

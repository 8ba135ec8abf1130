// SPDX-License-Identifier: BSD-3-Clause
#include "pteryx/ops/scaled_table.h"

namespace pteryx::ops {
namespace {

using Order = ScaledTable::Order;

// Scales are [vocabulary, groups] or [vocabulary]; where a linear layer shares them, [groups,
// vocabulary or more] or [vocabulary / 8 or more, groups, 8].
Result<ScaledTable> scaled(const Node& n, size_t scales, ScaledTable t, int64_t groups) {
  const Dims& d = n.in(scales).dims;
  if (d.rank() == 3 && d[0] * 8 >= t.vocabulary && d[1] == groups && d[2] == 8) {
    t.order = Order::kBlocks;
    t.scale_row = groups * 8;
    return t;
  }
  const bool vector = d.rank() == 1 && d[0] == t.vocabulary && groups == 1;
  const bool rows = vector || (d.rank() == 2 && d[0] == t.vocabulary && d[1] == groups);
  t.order = rows ? Order::kRows : Order::kGroups;
  t.scale_row = vector ? 1 : d.back();
  if (!rows && (d.rank() != 2 || d[0] != groups || d[1] < t.vocabulary))
    return n.expect(scales, "shape", {t.vocabulary, groups}, d);
  return t;
}

}  // namespace

int64_t ScaledTable::scale_at(int64_t token, int64_t e) const {
  if (order == Order::kRows) return token * scale_row + e / group;
  if (order == Order::kGroups) return e / group * scale_row + token;
  return token / 8 * scale_row + e / group * 8 + token % 8;
}

std::string ScaledTable::order_name() const {
  if (order == Order::kRows) return "rows";
  return order == Order::kGroups ? "groups" : "blocks";
}

Result<ScaledTable> scaled_table(const Node& n, const ScaledTableArgs& args,
                                 std::optional<int64_t> group, bool low_first) {
  const Tensor weight = n.in(args.weight);
  ScaledTable t{.vocabulary = weight.dims[0],
                .width = weight.dims[1] * (args.bytes ? 1 : 2),
                .row_bytes = weight.dims[1],
                .low_first = low_first};
  if (t.width == 0)
    return n.mismatch(args.weight, "shape", "rows of at least one code", to_string(weight.dims));
  if (!group) {
    const Dims& scales = n.in(args.scales).dims;
    const int64_t groups = scales.rank() == 2 ? scales[1] : 1;
    if (groups == 0 || t.width % groups != 0) {
      return n.mismatch(args.scales, "shape", fmt::format("groups that divide {}", t.width),
                        to_string(scales));
    }
    t.group = t.width / groups;
    return scaled(n, args.scales, t, groups);
  }
  t.group = *group;
  if (t.group <= 0 || t.width % t.group != 0) {
    return n.fail(
        Code::kInvalidArgument,
        fmt::format("group_size {} does not divide the {} elements of a row", t.group, t.width));
  }
  return scaled(n, args.scales, t, t.width / t.group);
}

}  // namespace pteryx::ops

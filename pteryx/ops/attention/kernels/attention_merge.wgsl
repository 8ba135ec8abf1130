// Joins the splits of a row: y[row] = sum of the parts over their total, each weighed by its own maximum.
// One workgroup per query row and head; `slots` sets of invocations take every slots-th split, then the first joins them.
// Host guarantees: partial is [items, splits, size4 + 1]: sums, then (peak, total).
#option size 1..1024
#option live_slots
#option y_type f16 | f32
#tensor partial raw vec4<f32>
#include "attention/common/attention.wgsl" has_mask=0
#include "attention/common/result.wgsl"

#let set = (size + 3) / 4
#let slots = 256 / set - (256 / set > 16) * (256 / set - 16)  // at most 16
const threads = 256u;
const set_size = size4;
const slots = $(slots)u;

var<workgroup> sums: array<vec4<f32>, threads>;
var<workgroup> marks: array<vec2<f32>, slots>;  // peak, total

@compute @workgroup_size(threads)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_group(group, groups);
  if (item >= params.items) { return; }
  let slot = local / size4;
  const own_head = 0u;
  let own_quad = local % size4;
  let splits = select(0u, live_splits(), slot < slots);
  var peak = lowest;
  var total = 0.0;
  var sum = vec4<f32>(0.0);
  for (var s = slot; s < splits; s += slots) {
    let begin = (item * params.splits + s) * (size4 + 1u);
    let part = partial[begin + own_quad];
    let mark = partial[begin + size4];
    let next = max(peak, mark.x);
    let fade = decay(peak - next);
    let weight = decay(mark.x - next);
    peak = next;
    total = total * fade + weight * mark.y;
    sum = sum * fade + weight * part;
  }
#include "attention/common/join.wgsl" shared=1
  let row = item % params.rows;
  let head = item / params.rows % params.heads;
  put4_y(y_offset(item / params.rows / params.heads, head, row), local, sum / total);
}

// Joins the splits of attention_rows: y[row] = sum of the parts over their total, each weighed by its own maximum.
// One workgroup per query row and head. partial is [items, splits, size4 + 1]: sums, then (peak, total).
#include "attention/common/attention.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let item = flat_group(group, groups);
  if (item >= params.items) { return; }
  let row = item % params.rows;
  let head = item / params.rows % params.heads;
  let at = q_offset(item / params.rows / params.heads, head, row);
  let first = item * params.splits * (size4 + 1u);
  let splits = live_splits();
  var peak = lowest;
  for (var s = 0u; s < splits; s++) { peak = max(peak, partial[first + s * (size4 + 1u) + size4].x); }
  for (var j = local; j < size4; j += 64u) {
    var sum = vec4<f32>(0.0);
    var total = 0.0;
    for (var s = 0u; s < splits; s++) {
      let split_at = first + s * (size4 + 1u);
      let part = partial[split_at + size4];
      let weight = decay(part.x - peak);
      sum += weight * partial[split_at + j];
      total += weight * part.y;
    }
    put4_y(at, j, sum / total);
  }
}

// y[b, e] = sum, mean or largest of weight[indices[i], e] over the i of bag b, those of row `padding` left out.
// One u32 word of y per invocation.
// Host guarantees: y is [bags, width], weight [rows, width]; `to_last_offset`: the last bag ends at an offset of its own,
// where there is one. The prelude gives `mode` (0 sum, 1 mean, 2 largest), `sample_weight(i)` and
// `emit_largest(i, row)`, which keeps the row of the largest element. Offsets and rows outside are
// taken for 0.
#include "common/index.wgsl"

struct Params { bags: u32, offsets: u32, indices: u32, rows: u32, width: u32, padding: i32, to_last_offset: u32,
  fault: u32 }
@group(0) @binding(0) var<uniform> params: Params;

fn offset(b: u32) -> u32 {
  let count = select(params.bags, params.offsets, params.to_last_offset == 1u);
  if (b >= count) { return params.indices; }
  return u32(max(place_offsets(b, i32(params.indices) + 1), 0));
}

fn fold(at: u32) -> f32 {
  let bag = at / params.width;
  let e = at % params.width;
  let end = offset(bag + 1u);
  var total = 0.0;
  var largest = -1;
  var counted = 0u;
  for (var i = offset(bag); i < end; i++) {
    let kept = max(place_indices(i, i32(params.rows)), 0);
    if (kept == params.padding) { continue; }
    counted++;
    let v = load_weight(u32(kept) * params.width + e);
    if (mode < 2u) {
      total += v * sample_weight(i);
    } else if (largest < 0 || v > total) {
      total = v;
      largest = kept;
    }
  }
  if (mode == 1u) {
    if (bag + 1u == params.bags) { counted += params.indices - min(end, params.indices); }
    total /= f32(max(counted, 1u));
  }
  emit_largest(at, max(largest, 0));
  return total;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let n = params.bags * params.width;
  if (w * y_lanes >= n) { return; }
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= n) { break; }
    word |= encode_y(lane, fold(i));
  }
  y[w] = word;
}

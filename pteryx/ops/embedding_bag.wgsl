// y[b, e] = sum, mean or largest of weight[indices[i], e] over the i of bag b, those of row `padding` left out.
// One u32 word of y per invocation.
// Host guarantees: y is [bags, width], weight [rows, width]; `to_last_offset`: the last bag ends at an offset of its own,
// where there is one. Offsets and rows outside are taken for 0.
#option mode sum | mean | max
#option weighted            // sums are of weights[i] * weight[indices[i], e]
#option keeps_largest       // the row of the largest element goes to `largest`
#option indices_arg 0..63
#option offsets_arg 0..63
#option reports
#tensor weight read f16 | f32
#tensor indices read i32
#tensor offsets read i32
#if weighted
#tensor weights read f16 | f32
#end
#tensor y words f16 | f32
#if keeps_largest
#tensor largest elements i32
#end
#include "common/index.wgsl"

struct Params { bags: u32, offsets: u32, indices: u32, rows: u32, width: u32, padding: i32, to_last_offset: u32,
  fault: u32 }
@group(0) @binding(0) var<uniform> params: Params;

#include "common/place.wgsl" name=indices arg=$indices_arg from_end=0
#include "common/place.wgsl" name=offsets arg=$offsets_arg from_end=0

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
  var row_of_largest = -1;
  var counted = 0u;
  for (var i = offset(bag); i < end; i++) {
    let kept = max(place_indices(i, i32(params.rows)), 0);
    if (kept == params.padding) { continue; }
    counted++;
    let v = load_weight(u32(kept) * params.width + e);
#if mode == max
    if (row_of_largest < 0 || v > total) {
      total = v;
      row_of_largest = kept;
    }
#elif weighted
    total += v * load_weights(i);
#else
    total += v;
#end
  }
#if mode == mean
  if (bag + 1u == params.bags) { counted += params.indices - min(end, params.indices); }
  total /= f32(max(counted, 1u));
#end
#if keeps_largest
  store_largest(at, max(row_of_largest, 0));
#end
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

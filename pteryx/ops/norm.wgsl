// y = (x - mean) * rstd * weight + bias, with mean and rstd of each row. A team of invocations works on one row.
// The variance is taken around the mean and corrected by what rounding left of it: exact also where mean >> deviation.
// Host guarantees: length > 0 where there are rows; y_lanes divides length and rows are dense, else y_lanes is 1.
// The prelude gives `centred`, `fn offset(row: u32, k: u32) -> u32`, `fn affine(v: f32, row: u32, k: u32) -> f32` and
// `fn put_stats(row: u32, mean: f32, rstd: f32)`.
#include "common/index.wgsl"

struct Params { rows: u32, length: u32, groups: u32, channels: u32, inner: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;

// (sum of x - mean, sum of its squares)
alias acc = vec2<f32>;
fn combine(a: acc, b: acc) -> acc { return a + b; }

// One invocation's share of a row. Blocks of 32 keep the rounding of long sums near that of a tree.
fn gather(row: u32, lane: u32, mean: f32) -> acc {
  var total = acc(0.0);
  for (var first = lane; first < params.length; first += team * 32u) {
    var part = acc(0.0);
    let end = min(first + team * 32u, params.length);
    for (var k = first; k < end; k += team) {
      let d = load_x(offset(row, k)) - mean;
      part += acc(d, d * d);
    }
    total += part;
  }
  return total;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = flat_group(group, groups) * (wg_size / team) + local / team;
  let lane = local & (team - 1u);
  let inside = row < params.rows;
  let share = 1.0 / f32(params.length);
  var mean = 0.0;
  if (centred) {
    var part = acc(0.0);
    if (inside) { part = gather(row, lane, 0.0); }
    mean = fold(part, local).x * share;
  }
  var part = acc(0.0);
  if (inside) { part = gather(row, lane, mean); }
  let sums = fold(part, local) * share;
  if (!inside) { return; }
  let left = select(0.0, sums.x, centred);
  let rstd = inverseSqrt(max(sums.y - left * left, 0.0) + params.eps);
  if (lane == 0u) { put_stats(row, mean + left, rstd); }
  for (var k = lane * y_lanes; k < params.length; k += team * y_lanes) {
    var word = 0u;
    for (var j = 0u; j < y_lanes; j++) {
      word |= encode_y(j, affine(((load_x(offset(row, k + j)) - mean) - left) * rstd, row, k + j));
    }
    y[offset(row, k) / y_lanes] = word;
  }
}

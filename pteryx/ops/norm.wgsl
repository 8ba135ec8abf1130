// y = (x - mean) * rstd * weight + bias, with mean and rstd of each row. A team of invocations works on one row.
// The variance is taken around the mean and corrected by what rounding left of it: exact also where mean >> deviation.
// Host guarantees: length > 0 where there are rows; y_lanes divides length and rows are dense, else y_lanes is 1.
// The prelude gives `centred`; `held`, the number of words of y that cover an invocation's share, which then stays in
// registers, or 0 to read it anew each time; `fn offset(row: u32, k: u32) -> u32`,
// `fn affine(v: f32, row: u32, k: u32) -> f32` and `fn put_stats(row: u32, mean: f32, rstd: f32)`.
#include "common/index.wgsl"

struct Params { rows: u32, length: u32, groups: u32, channels: u32, inner: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;

const slots: u32 = max(held * y_lanes, 1u);
var<private> kept: array<f32, slots>;

// (sum of x - mean, sum of its squares)
alias acc = vec2<f32>;
fn combine(a: acc, b: acc) -> acc { return a + b; }

// The k of an invocation's s-th item.
fn item(lane: u32, s: u32) -> u32 { return (lane + s / y_lanes * team) * y_lanes + s % y_lanes; }

// One invocation's share of a row. Blocks of 32 keep the rounding of long sums near that of a tree.
fn gather(row: u32, lane: u32, mean: f32) -> acc {
  var total = acc(0.0);
  if (held > 0u) {
    for (var s = 0u; s < held * y_lanes; s++) {
      let d = kept[s] - mean;
      if (item(lane, s) < params.length) { total += acc(d, d * d); }
    }
    return total;
  }
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
  if (inside) {
    for (var s = 0u; s < held * y_lanes; s++) {
      let k = item(lane, s);
      if (k < params.length) { kept[s] = load_x(offset(row, k)); }
    }
  }
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
  if (held > 0u) {
    for (var i = 0u; i < held; i++) {
      let k = item(lane, i * y_lanes);
      if (k < params.length) {
        var word = 0u;
        for (var j = 0u; j < y_lanes; j++) {
          word |= encode_y(j, affine(((kept[i * y_lanes + j] - mean) - left) * rstd, row, k + j));
        }
        y[offset(row, k) / y_lanes] = word;
      }
    }
    return;
  }
  for (var k = lane * y_lanes; k < params.length; k += team * y_lanes) {
    var word = 0u;
    for (var j = 0u; j < y_lanes; j++) {
      word |= encode_y(j, affine(((load_x(offset(row, k + j)) - mean) - left) * rstd, row, k + j));
    }
    y[offset(row, k) / y_lanes] = word;
  }
}

// y = activation((x - mean) * rstd * weight + bias), with mean and rstd of each row. A team of invocations works on one row.
// The variance is taken around the mean and corrected by what rounding left of it: exact also where mean >> deviation.
// Host guarantees: length > 0 where there are rows; y_lanes divides length and rows are dense, else y_lanes is 1.
#option rows dense | groups | channels  // of x: one after another; of [groups, channels, inner]; of [.., rows, inner]
#option centred     // around the mean
#option has_weight
#option has_bias
#option activation none | silu
#option has_mean    // results
#option has_rstd
#option held 0..16  // words of y that cover an invocation's share, which then stays in registers; 0: it is read anew
#option row_words
#option interleaved  // of every eight of a row, y has 0 4 1 5 2 6 3 7, in halves
#option y_type f16 | f32
#option team 1..1024
#option wg_size 1..1024
#option block 0..1024
#if interleaved
#require rows == dense && row_words && y_type == f16
#end
#tensor x read f16 | f32
#if has_weight
#tensor weight read f16 | f32
#end
#if has_bias
#tensor bias read f16 | f32
#end
#include "common/row_words.wgsl"
#if has_mean
#tensor mean elements f16 | f32
#end
#if has_rstd
#tensor rstd elements f16 | f32
#end
#include "common/index.wgsl"

struct Params { rows: u32, length: u32, groups: u32, channels: u32, inner: u32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;

// Those words of x that an invocation holds are also its words of y.
#let whole_words = row_words && x_type == f16 && y_type == f16 && !interleaved
#if held > 0
const held: u32 = $(held)u;
var<private> kept: array<f32, held * y_lanes>;
#end

// (sum of x - mean, sum of its squares)
alias acc = vec2<f32>;
fn combine(a: acc, b: acc) -> acc { return a + b; }
#include "common/fold.wgsl"

fn offset(row: u32, k: u32) -> u32 {
#if rows == channels
  return (k / params.inner * params.rows + row) * params.inner + k % params.inner;
#else
  return row * params.length + k;
#end
}

fn channel(row: u32, k: u32) -> u32 {
#if rows == channels
  return row;
#elif rows == groups
  return row % params.groups * params.channels + k / params.inner;
#else
  return k;
#end
}
#include "common/affine.wgsl"
#if activation == silu
#include "common/math.wgsl"
fn finish(v: f32, c: u32) -> f32 { return silu_of(affine(v, c)); }
#else
fn finish(v: f32, c: u32) -> f32 { return affine(v, c); }
#end

// The k of element j of word w of a row of y.
fn place(w: u32, j: u32) -> u32 {
#if interleaved
  return w / 4u * 8u + w % 4u + j * 4u;
#else
  return w * y_lanes + j;
#end
}
// The k of an invocation's s-th item.
fn item(lane: u32, s: u32) -> u32 { return place(lane + s / y_lanes * team, s % y_lanes); }

// One invocation's share of a row. Blocks of 32 keep the rounding of long sums near that of a tree.
fn gather(row: u32, lane: u32, mean: f32) -> acc {
  var total = acc(0.0);
#if held > 0
  for (var s = 0u; s < held * y_lanes; s++) {
    let d = kept[s] - mean;
    if (item(lane, s) < params.length) { total += acc(d, d * d); }
  }
#else
  for (var first = lane; first < params.length; first += team * 32u) {
    var part = acc(0.0);
    let end = min(first + team * 32u, params.length);
    for (var k = first; k < end; k += team) {
      let d = load_x(offset(row, k)) - mean;
      part += acc(d, d * d);
    }
    total += part;
  }
#end
  return total;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = flat_group(group, groups) * (wg_size / team) + local / team;
  let lane = local & (team - 1u);
  let inside = row < params.rows;
  let share = 1.0 / f32(params.length);
#if held > 0
  if (inside) {
#if whole_words
    // All loads before the first of them is widened.
    var words: array<u32, held>;
    for (var i = 0u; i < held; i++) {
      let k = item(lane, i * 2u);
      if (k < params.length) { words[i] = x[offset(row, k) / 2u]; }
    }
    for (var i = 0u; i < held; i++) {
      let pair = unpack2x16float(words[i]);
      kept[i * 2u] = pair.x;
      kept[i * 2u + 1u] = pair.y;
    }
#else
    for (var s = 0u; s < held * y_lanes; s++) {
      let k = item(lane, s);
      if (k < params.length) { kept[s] = load_x(offset(row, k)); }
    }
#end
  }
#end
  var part = acc(0.0);
#if centred
  if (inside) { part = gather(row, lane, 0.0); }
  let mean_of_row = fold(part, local).x * share;
  part = acc(0.0);
#else
  let mean_of_row = 0.0;
#end
  if (inside) { part = gather(row, lane, mean_of_row); }
  let sums = fold(part, local) * share;
  if (!inside) { return; }
#if centred
  let left = sums.x;
#else
  let left = 0.0;
#end
  let scale = inverseSqrt(max(sums.y - left * left, 0.0) + params.eps);
#if has_mean
  if (lane == 0u) { store_mean(row, mean_of_row + left); }
#end
#if has_rstd
  if (lane == 0u) { store_rstd(row, scale); }
#end
#if held > 0
  for (var i = 0u; i < held; i++) {
    let w = lane + i * team;
    if (w * y_lanes < params.length) {
      var word = 0u;
      for (var j = 0u; j < y_lanes; j++) {
        word |= encode_y(j, finish(((kept[i * y_lanes + j] - mean_of_row) - left) * scale, channel(row, place(w, j))));
      }
      y[offset(row, w * y_lanes) / y_lanes] = word;
    }
  }
#else
  for (var w = lane; w * y_lanes < params.length; w += team) {
    var word = 0u;
    for (var j = 0u; j < y_lanes; j++) {
      let k = place(w, j);
      word |= encode_y(j, finish(((load_x(offset(row, k)) - mean_of_row) - left) * scale, channel(row, k)));
    }
    y[offset(row, w * y_lanes) / y_lanes] = word;
  }
#end
}

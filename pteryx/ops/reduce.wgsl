// y[row] = the fold of item(row, k) over k. A team of invocations folds a row, `rows_per_team` rows one after another.
// A row may be cut into `splits` parts of `chunk` items, which then count as rows of their own: row + part * rows.
// Host guarantees: row_dims and item_dims are the kept and the reduced dims of x, merged and right-aligned.
#option rule sum | mean | prod | max | min | argmax | argmin | pair_max | pair_min | var | std | var_mean
#option compute f32 | i32  // what is added or multiplied; of extremes, what x has
#option flat_items         // the reduced dims merge to one
#option from_parts         // what another pass has made of parts of rows is folded
#option to_parts           // folds are left as they are, for another pass
#option team 1..1024
#option wg_size 1..1024
#option block 0..1024
#require !(from_parts && to_parts)
#require rule != mean || compute == f32
#let minimum = rule == min || rule == argmin || rule == pair_min
#let pair = rule == pair_max || rule == pair_min
#let has_place = pair || rule == argmax || rule == argmin
#let extreme = has_place || rule == max || rule == min
#let variance = rule == var || rule == std || rule == var_mean
#if has_place
alias acc = vec2<i32>;  // key, place
#elif extreme
alias acc = i32;  // key
#elif variance
alias acc = vec4<f32>;  // mean, sum of squared distances from it, count, unused
#else
alias acc = $compute;
#end
#if from_parts
#tensor parts raw acc
#else
#tensor x read
#end
#if to_parts
#tensor parts raw_write acc
#else
#tensor y words
#if pair
#tensor indices words i32
#elif rule == var_mean
#tensor mean words f16 | f32
#end
#end
#include "common/index.wgsl"

struct Params {
  row_dims: array<vec4<u32>, 2>, row_strides: array<vec4<u32>, 2>,
  item_dims: array<vec4<u32>, 2>, item_strides: array<vec4<u32>, 2>,
  row_first: u32, item_first: u32, rows: u32, length: u32, splits: u32, chunk: u32, count: f32, correction: f32
}
@group(0) @binding(0) var<uniform> params: Params;

#if extreme
// Extremes are compared as integers that order like the floats: exact for infinities, NaN above all, as in PyTorch. A
// minimum is the maximum of the complement.
#if minimum
fn turned(k: i32) -> i32 { return ~k; }
#else
fn turned(k: i32) -> i32 { return k; }
#end
#if compute == f32
fn key(v: f32) -> i32 {
  let bits = bitcast<i32>(v);
  let magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) { return 0x7fffffff; }
  if (magnitude == 0) { return turned(0); }
  return turned(bits ^ ((bits >> 31u) & 0x7fffffff));
}
fn unkey(k: i32) -> f32 {
  let ordered = turned(k);
  return bitcast<f32>(ordered ^ ((ordered >> 31u) & 0x7fffffff));
}
#else
fn key(v: i32) -> i32 { return turned(v); }
fn unkey(k: i32) -> i32 { return turned(k); }
#end
#end

#if has_place
fn identity() -> acc { return acc(bitcast<i32>(0x80000000u), 0x7fffffff); }
fn combine(a: acc, b: acc) -> acc { return select(b, a, a.x > b.x || (a.x == b.x && a.y < b.y)); }
#elif extreme
fn identity() -> acc { return bitcast<i32>(0x80000000u); }
fn combine(a: acc, b: acc) -> acc { return max(a, b); }
#elif variance
fn identity() -> acc { return acc(0.0); }
fn combine(a: acc, b: acc) -> acc {
  let n = a.z + b.z;
  let share = b.z / max(n, 1.0);
  let d = b.x - a.x;
  return acc(a.x + d * share, a.y + b.y + d * d * a.z * share, n, 0.0);
}
fn spread(v: acc) -> f32 { return v.y / max(params.count - params.correction, 0.0); }
#elif rule == prod
fn identity() -> acc { return acc(1); }
fn combine(a: acc, b: acc) -> acc { return a * b; }
#else
fn identity() -> acc { return acc(0); }
fn combine(a: acc, b: acc) -> acc { return a + b; }
#end
#include "common/fold.wgsl"

// Element x[at], the k-th of its row.
fn item(at: u32, k: u32) -> acc {
#if from_parts
  return parts[at];
#elif has_place
  return acc(key($(compute)(load_x(at))), i32(k));
#elif extreme
  return key($(compute)(load_x(at)));
#elif variance
  return acc(f32(load_x(at)), 0.0, 1.0, 0.0);
#else
  return acc(load_x(at));
#end
}

// The fold of a row, as lane `lane` of the words of a team; then the words.
#if to_parts
const rows_per_team: u32 = 1u;
fn emit(row: u32, lane: u32, v: acc) { parts[row] = v; }
fn flush(unit: u32) {}
#else
const rows_per_team: u32 = y_lanes;
var<private> word: u32 = 0u;
#if rule == var_mean
var<private> mean_word: u32 = 0u;
#end
fn emit(row: u32, lane: u32, v: acc) {
#if pair
  word |= encode_y(lane, y_t(unkey(v.x)));
  indices[row] = encode_indices(0u, v.y);
#elif has_place
  word |= encode_y(lane, y_t(v.y));
#elif extreme
  word |= encode_y(lane, y_t(unkey(v)));
#elif rule == std
  word |= encode_y(lane, y_t(sqrt(spread(v))));
#elif rule == var
  word |= encode_y(lane, y_t(spread(v)));
#elif rule == var_mean
  word |= encode_y(lane, y_t(spread(v)));
  mean_word |= encode_mean(lane, v.x);
#elif rule == mean
  word |= encode_y(lane, y_t(v / params.count));
#else
  word |= encode_y(lane, y_t(v));
#end
}
fn flush(unit: u32) {
  y[unit] = word;
#if rule == var_mean
  mean[unit] = mean_word;
#end
}
#end

fn row_offset(row: u32) -> u32 {
  var rest = row;
  var at = 0u;
  for (var d = 7u; d > params.row_first; d--) {
    let size = params.row_dims[d >> 2u][d & 3u];
    at += (rest % size) * params.row_strides[d >> 2u][d & 3u];
    rest /= size;
  }
  return at + rest * params.row_strides[params.row_first >> 2u][params.row_first & 3u];
}

fn item_offset(k: u32) -> u32 {
#if flat_items
  return k * params.item_strides[1].w;
#else
  var rest = k;
  var at = 0u;
  for (var d = 7u; d > params.item_first; d--) {
    let size = params.item_dims[d >> 2u][d & 3u];
    at += (rest % size) * params.item_strides[d >> 2u][d & 3u];
    rest /= size;
  }
  return at + rest * params.item_strides[params.item_first >> 2u][params.item_first & 3u];
#end
}

// One invocation's share of a row. Blocks of 32 keep the rounding of long sums near that of a tree; fours let loads
// overlap.
fn gather(row: u32, lane: u32) -> acc {
  let base = row_offset(row % params.rows);
  let start = row / params.rows * params.chunk;
  let end = min(start + params.chunk, params.length);
  var total = identity();
  for (var first = start + lane; first < end; first += team * 32u) {
    var part = identity();
    let stop = min(first + team * 32u, end);
    var k = first;
    for (; k + team * 3u < stop; k += team * 4u) {
      let a = item(base + item_offset(k), k);
      let b = item(base + item_offset(k + team), k + team);
      let c = item(base + item_offset(k + team * 2u), k + team * 2u);
      let d = item(base + item_offset(k + team * 3u), k + team * 3u);
      part = combine(part, combine(combine(a, b), combine(c, d)));
    }
    for (; k < stop; k += team) { part = combine(part, item(base + item_offset(k), k)); }
    total = combine(total, part);
  }
  return total;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let unit = flat_group(group, groups) * (wg_size / team) + local / team;
  let lane = local & (team - 1u);
  let rows = params.rows * params.splits;
  for (var j = 0u; j < rows_per_team; j++) {
    let row = unit * rows_per_team + j;
    var total = identity();
    if (row < rows) { total = gather(row, lane); }
    total = fold(total, local);
    if (lane == 0u && row < rows) { emit(row, j, total); }
  }
  if (lane == 0u && unit * rows_per_team < rows) { flush(unit); }
}

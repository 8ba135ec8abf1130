// y[row] = the fold of item(row, k) over k. A team of invocations folds a row, `rows_per_team` rows one after another.
// A row may be cut into `splits` parts of `chunk` items, which then count as rows of their own: row + part * rows.
// Host guarantees: row_dims and item_dims are the kept and the reduced dims of x, merged and right-aligned.
// The prelude gives `alias acc`, `fn identity() -> acc`, `fn combine`, `fn item(at: u32, k: u32) -> acc` for element
// x[at], the k-th of its row, `flat_items` where the reduced dims merge to one, `fn emit(row: u32, lane: u32, v: acc)`, `fn flush(unit: u32)` and `rows_per_team`.
#include "common/index.wgsl"

struct Params {
  row_dims: array<vec4<u32>, 2>, row_strides: array<vec4<u32>, 2>,
  item_dims: array<vec4<u32>, 2>, item_strides: array<vec4<u32>, 2>,
  row_first: u32, item_first: u32, rows: u32, length: u32, splits: u32, chunk: u32, count: f32, correction: f32
}
@group(0) @binding(0) var<uniform> params: Params;

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
  if (flat_items) { return k * params.item_strides[1].w; }
  var rest = k;
  var at = 0u;
  for (var d = 7u; d > params.item_first; d--) {
    let size = params.item_dims[d >> 2u][d & 3u];
    at += (rest % size) * params.item_strides[d >> 2u][d & 3u];
    rest /= size;
  }
  return at + rest * params.item_strides[params.item_first >> 2u][params.item_first & 3u];
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

// One tile of a matrix product per workgroup of 64 invocations, 8 x 8 of them: C[m, n] = sum over k of A[m, k] B[k, n].
// Each invocation holds row_quads x col_quads blocks of 4 x 4; both operands pass through workgroup memory 16 terms at
// a time.
#option quads 1..2  // row_quads and col_quads
#option split       // y are the sums of each split, for conv_merge
#option whole_tiles
const row_quads: u32 = $(quads)u;
const col_quads: u32 = $(quads)u;
const tile_m: u32 = 32u * row_quads;
const tile_n: u32 = 32u * col_quads;
const tile_k: u32 = 16u;
const a_row: u32 = 8u * row_quads + 1u;  // one more than needed: 16 rows then lie in different banks
const b_row: u32 = 8u * col_quads;

var<workgroup> tile_a: array<vec4<f32>, tile_k * a_row>;  // [k][m / 4]
var<workgroup> tile_b: array<vec4<f32>, tile_k * b_row>;  // [k][n / 4]
// An invocation's results. Kept in a function: module-scope arrays end up in memory instead of registers.
alias Sums = array<vec4<f32>, 4u * row_quads * col_quads>;

struct Tile { image: u32, g: u32, m: u32, n: u32, split: u32 }

// Rows run fastest, so that neighbouring workgroups read the same columns of B.
fn locate(index: u32) -> Tile {
  let tiles_m = (params.out_channels + tile_m - 1u) / tile_m;
  let tiles_n = (params.out_size.w + tile_n - 1u) / tile_n;
  var rest = index;
  let m = rest % tiles_m * tile_m;
  rest /= tiles_m;
  let n = rest % tiles_n * tile_n;
  rest /= tiles_n;
  let split = rest % params.splits;
  rest /= params.splits;
  return Tile(rest / params.groups, rest % params.groups, m, n, split);
}

// The weights: A[m, k] of group g, rows m .. m + tile_m, terms k .. k + tile_k; nothing beyond `end`.
fn fill_a(tile: Tile, k: u32, end: u32, local: u32) {
  let terms = params.in_channels * params.kernel.w;
  for (var i = local; i < tile_k * 8u * row_quads; i += 64u) {
    let term = k + i % tile_k;
    let m = tile.m + i / tile_k * 4u;
    var v = vec4<f32>();
    if (term < end) {
      let at = (tile.g * params.out_channels + m) * terms + term;
      if (m < params.out_channels) { v.x = load_weight(at); }
      if (m + 1u < params.out_channels) { v.y = load_weight(at + terms); }
      if (m + 2u < params.out_channels) { v.z = load_weight(at + 2u * terms); }
      if (m + 3u < params.out_channels) { v.w = load_weight(at + 3u * terms); }
    }
    tile_a[i % tile_k * a_row + i / tile_k] = v;
  }
}

// `count` terms. With `whole_tiles` always all of them (those beyond the end are 0), a loop that drivers unroll so that
// the sums stay in registers; without it a short text, which the software GPU compiles five times as fast.
fn multiply(sums: ptr<function, Sums>, local: u32, count: u32) {
#if whole_tiles
  let stop = tile_k;
#else
  let stop = count;
#end
  for (var k = 0u; k < stop; k++) {
    for (var r = 0u; r < row_quads; r++) {
      let a = tile_a[k * a_row + local / 8u + 8u * r];
      for (var c = 0u; c < col_quads; c++) {
        let b = tile_b[k * b_row + local % 8u + 8u * c];
        let at = 4u * (r * col_quads + c);
        (*sums)[at] = fma(vec4<f32>(a.x), b, (*sums)[at]);
        (*sums)[at + 1u] = fma(vec4<f32>(a.y), b, (*sums)[at + 1u]);
        (*sums)[at + 2u] = fma(vec4<f32>(a.z), b, (*sums)[at + 2u]);
        (*sums)[at + 3u] = fma(vec4<f32>(a.w), b, (*sums)[at + 3u]);
      }
    }
  }
}

// Writes the tile: results, or where the terms were split the sums of this split, to be merged by conv_merge.
fn finish_tile(sums: ptr<function, Sums>, tile: Tile, local: u32) {
  let positions = params.out_size.w;
  for (var r = 0u; r < row_quads; r++) {
    for (var c = 0u; c < col_quads; c++) {
      let n = tile.n + (local % 8u + 8u * c) * 4u;
      if (n >= positions) { continue; }
      for (var e = 0u; e < 4u; e++) {
        let m = tile.m + (local / 8u + 8u * r) * 4u + e;
        if (m >= params.out_channels) { break; }
        let channel = tile.g * params.out_channels + m;
        let row = tile.image * params.groups * params.out_channels + channel;
        let v = (*sums)[4u * (r * col_quads + c) + e];
#if split
        put(tile.split * params.split_size + row * positions + n, min(4u, positions - n), v);
#else
        put(row * positions + n, min(4u, positions - n), finish(v + bias_at(channel)));
#end
      }
    }
  }
}

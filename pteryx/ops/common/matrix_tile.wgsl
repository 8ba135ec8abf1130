// y[m, n] = sum over k of a[m, k] * b[k, n] with subgroup matrices: f16 operands, f32 sums. Four subgroups of 32 make a
// square tile of y, a quarter each in 16 x 16 pieces, from tiles of a and b in workgroup memory, 64 of k at a time; the
// next tiles are on their way in registers while these are multiplied.
// Per step of tile 128: 2 * 128 * 128 * 64 operations on 16 KiB of a and as much of b as its packing has.
// k may be cut into `splits` parts of `chunk` (a multiple of 64), which count as batches: batch + part * batches.
// Host guarantees: subgroups of 32; a [batches, m, k up to a multiple of 64] in f16, what is beyond k is 0.
// The sums have names, and the steps that use them are written out (matrix_sums_text): compilers keep an
// array of matrices in memory, which costs most of the speed.
// The prelude gives matrix_ops.wgsl, `clear_sums`, `multiply_step`, `store_piece`, `tile` (128 or 64), `along_k`, `fn batches() -> u32`, `put2`,
//   unit_b: how many of b one load has (8, 16 or 32; 8 unless along_k)
//   fn raw_b(batch: u32, n: u32, k: u32) -> vec4<u32>, fn scale_b(n: u32, k: u32) -> f32   one load at (k .., n), or at
//                                                      (k, n ..) unless along_k; finite outside
//   fn expand_b(raw: vec4<u32>, scale: f32, j: u32) -> vec4<u32>   its numbers 8j .. 8j+7 as f16
const depth: u32 = 64u;
const side: u32 = tile / 2u;
const pieces: u32 = side / 16u;
// Vectors of eight in a row of a tile, one more than it has, so that rows start in different banks.
const wide_a: u32 = depth / 8u + 1u;
const wide_b: u32 = select(tile, depth, along_k) / 8u + 1u;
const loads_a: u32 = tile * depth / 8u / 128u;
const loads_b: u32 = tile * depth / unit_b / 128u;
const row_loads_b: u32 = select(tile, depth, along_k) / unit_b;

// Arrays of vec4<u32> are the widest that matrices are loaded from: offsets and strides count eights of f16.
var<workgroup> tile_a: array<vec4<u32>, tile * wide_a>;
var<workgroup> tile_b: array<vec4<u32>, select(depth, tile, along_k) * wide_b>;
var<workgroup> tile_y: array<f32, 4u * 256u>;  // a piece of each subgroup

fn a_at(batch: u32, m: u32, k: u32) -> vec4<u32> {
  return a[(batch * params.m + min(m, params.m - 1u)) * ((params.k + 63u) / 64u * 8u) + k / 8u];
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let tiles_m = (params.m + tile - 1u) / tile;
  let tiles_n = (params.n + tile - 1u) / tile;
  let at = flat_group(group, groups);
  let part = at / tiles_m / tiles_n;
  if (part >= batches() * params.splits) { return; }
  let batch = part % batches();
  let first_m = at % tiles_m * tile;
  let first_n = at / tiles_m % tiles_n * tile;
  let start_k = part / batches() * params.chunk;
  let end_k = min(start_k + params.chunk, params.k);
  let owner = local / 32u;
  let lane = local % 32u;
  let own_m = owner % 2u * side;
  let own_n = owner / 2u * side;

  var sums: Sums;
  clear_sums(&sums);
  var next_a: array<vec4<u32>, loads_a>;
  var next_b: array<vec4<u32>, loads_b>;
  var next_scale: array<f32, loads_b>;
  for (var k = start_k; k < end_k + depth; k += depth) {
    if (k < end_k) {
      for (var i = 0u; i < loads_a; i++) {
        let e = local + i * 128u;
        next_a[i] = a_at(batch, first_m + e / 8u, k + e % 8u * 8u);
      }
      for (var i = 0u; i < loads_b; i++) {
        let e = local + i * 128u;
        let row = e / row_loads_b;
        let column = e % row_loads_b * unit_b;
        let n = first_n + select(column, row, along_k);
        let at_k = k + select(row, column, along_k);
        next_b[i] = raw_b(batch, n, at_k);
        next_scale[i] = scale_b(n, at_k);
      }
    }
    if (k > start_k) {
      multiply_step(&sums, own_m, own_n, 0u);
      multiply_step(&sums, own_m, own_n, 1u);
      multiply_step(&sums, own_m, own_n, 2u);
      multiply_step(&sums, own_m, own_n, 3u);
    }
    workgroupBarrier();
    for (var i = 0u; i < loads_a; i++) {
      let e = local + i * 128u;
      tile_a[e / 8u * wide_a + e % 8u] = next_a[i];
    }
    for (var i = 0u; i < loads_b; i++) {
      let e = local + i * 128u;
      let slot = e / row_loads_b * wide_b + e % row_loads_b * (unit_b / 8u);
      for (var j = 0u; j < unit_b / 8u; j++) { tile_b[slot + j] = expand_b(next_b[i], next_scale[i], j); }
    }
    workgroupBarrier();
  }

  // Matrices have no elements to be read: they go through workgroup memory, a piece of each subgroup at a time.
  for (var i = 0u; i < pieces; i++) {
    for (var j = 0u; j < pieces; j++) {
      store_piece(&sums, owner * 256u, i * pieces + j);
      workgroupBarrier();
      for (var e = lane; e < 128u; e += 32u) {
        let pair = owner * 256u + e * 2u;
        put2(part, first_m + own_m + i * 16u + e / 8u, first_n + own_n + j * 16u + e % 8u * 2u,
             vec2<f32>(tile_y[pair], tile_y[pair + 1u]));
      }
      workgroupBarrier();
    }
  }
}

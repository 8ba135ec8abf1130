// A product of f16 operands with f32 sums for devices without subgroup matrices. A workgroup of 16 x 16 invocations makes a
// tile of y, 4 or 8 rows by 8 columns each, from tiles of a and b in workgroup memory, 32 of k at a time, kept as pairs
// along k: [pair][four rows]. While one step of k is multiplied the next is on its way to registers.
// 128 x 128: 2^20 operations on 8 KiB of a, and as much of b as its packing has; 17 KiB of workgroup memory.
// k is cut into `splits` parts of the same number of steps.
// Host guarantees: a [rows, steps * splits * 32] in f16, where what is beyond k is 0; its rows are m, or
// fill every tile (a_filled).
// Who includes it has params with m, n, splits, `a`, and unit_b, raw_b, RawScale, raw_scale_b, scale_b, expand_b as
// in subgroup_matrix_tile.wgsl.
// Then main has f16_tile_sums.wgsl.
#option row_fours 1..2
#option a_filled
#option steps 1..65536
#option splits 1..64
#option unit_b 8 | 16 | 32
#option scaled_b
const tile_m: u32 = $(row_fours * 64)u;
const tile_n: u32 = 128u;
var<workgroup> tile_a: array<array<vec4<u32>, $(row_fours * 16 + 1)>, 16>;
var<workgroup> tile_b: array<array<vec4<u32>, 33>, 16>;

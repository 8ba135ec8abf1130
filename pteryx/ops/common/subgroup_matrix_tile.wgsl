// A product with subgroup matrices: f16 operands, f32 sums. Four subgroups of 32 make a tile of y from tiles of a and b in
// workgroup memory, `depth` of k at a time; each has pieces_m x pieces_n matrices of 16 x 16, and `subgroups_m` of them are
// below each other. While one step of k is multiplied the next is on its way to registers.
// Per step of 128 x 128 x 64: 2^21 operations on 16 KiB of a, and as much of b as its packing has.
// k is cut into `splits` parts of the same number of steps, which count as batches: batch + part * batches.
// The workgroup memory of a subgroup is an array of its own, and matrices are loaded from it at constants: what lies within
// bounds at sight needs no check. Sums have names, since compilers keep arrays of matrices in memory.
// Host guarantees: subgroups of 32; a [batches, rows, steps * splits * depth] in f16, where what is beyond k is 0; its rows
// are m, or so many more that every tile is filled (a_filled), of any content.
// Who includes it has params with m, n, k, splits, chunk (steps * depth), `fn batches() -> u32`, `a`, and for b
//   unit_b: how many of b one load has (8, 16 or 32; 8 unless along_k)
//   fn raw_b(batch: u32, n: u32, k: u32) -> vec4<u32>   one load at (k .., n), or at (k, n ..) unless along_k
//   fn raw_scale_b(n: u32, k: u32) -> RawScale          its scale, where b is scaled, as it is in memory,
//   fn scale_b(raw: RawScale, n: u32, k: u32) -> Scale  and as numbers: nothing waits for a load that it does not need yet
//   fn expand_b(words, scale: Scale) -> vec4<u32>       eight of its numbers as f16; not for units of 8
// whose values are finite outside of b. Then main has subgroup_matrix_sums.wgsl, and _parts or _results behind it.
#option pieces_m 1..4
#option pieces_n 1 | 2 | 4
#option subgroups_m 1..2
#option depth_sixteens 2 | 4 | 8
#option steps 0..65536  // of k for each part; 0: what params have
#option splits 1..64    // where steps are given
#option along_k
#option a_filled
#option unit_b 8 | 16 | 32
#option scaled_b
#option rolled  // the loop over k reads its bound in every turn, so that compilers do not unroll it: code of several products
// then stays in a processor's cache between them; read once before the loop, it was unrolled all the same
#option from_residual  // sums of whole tiles begin with those of `residual`, f32 [m, n], whose rows are y_stride
#enable f16
#enable subgroups
#enable subgroup_matrix
const depth: u32 = $(depth_sixteens * 16)u;
const side_m: u32 = $(pieces_m * 16)u;  // of a subgroup
const side_n: u32 = $(pieces_n * 16)u;
const tile_m: u32 = side_m * $(subgroups_m)u;
const tile_n: u32 = side_n * $(4 / subgroups_m)u;
// Vectors of eight in a row of a tile: one more than it has, so that rows start in different banks.
const wide_a: u32 = $(depth_sixteens * 2 + 1)u;
const wide_y: u32 = 9u;  // of fours
#if along_k
const wide_b: u32 = wide_a;
const rows_b: u32 = side_n;
const row_loads_b: u32 = depth / $(unit_b)u;
#else
const wide_b: u32 = $(pieces_n * 2 + 1)u;
const rows_b: u32 = depth;
const row_loads_b: u32 = tile_n / 8u;
#end
const row_loads_a: u32 = depth / 8u;

// Offsets and strides of matrices count vectors, of eight f16 or four f32.
var<workgroup> tile_a: array<array<vec4<u32>, side_m * wide_a>, $subgroups_m>;
var<workgroup> tile_b: array<array<vec4<u32>, rows_b * wide_b>, $(4 / subgroups_m)>;

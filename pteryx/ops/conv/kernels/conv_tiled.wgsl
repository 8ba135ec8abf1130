// The general fast route: per image and group a matrix product of weight [OC, IC KH KW] and the unfolded input
// [IC KH KW, OH OW], which is gathered into workgroup memory and never stored. One tile per workgroup.
// Roofline: flops = 2 OC N K. A tile of 64 x 64 reads 2 * 64 K elements for 2 * 64 * 64 K flops: 16 flops a byte of f32
// from the cache (32 x 32: 8), and 64 products per 4 vector reads of workgroup memory, so it is bound by arithmetic
// where there are tiles enough to fill the device; `splits` cuts K where there are not.
// Host guarantees: depth 1; items = tiles * splits * batch * groups.
#option has_bias
#option has_lo
#option has_hi
#option row_words
#option y_type f16 | f32
#option quads 1..2   // tiles of 32 or 64
#option split        // y are the sums of each split
#option whole_tiles
#tensor x read f16 | f32
#tensor weight read f16 | f32
#if has_bias
#tensor bias read f16 | f32
#end
#include "conv/common/conv.wgsl"
#include "conv/common/tile.wgsl"

// Of the coming and the current 16 terms: offset in x, row and column of the kernel entry, 1 if there is such a term.
var<workgroup> taps: array<vec4<i32>, 2u * tile_k>;

fn fill_taps(k: u32, end: u32, half: u32, local: u32) {
  if (local >= tile_k) { return; }
  let term = k + local;
  let ic = term / params.kernel.w;
  let entry = term % params.kernel.w;
  let h = i32(entry / params.kernel.z * params.dilation.y);
  let w = i32(entry % params.kernel.z * params.dilation.z);
  taps[half * tile_k + local] =
      vec4<i32>(i32(ic * params.in_size.w) + h * i32(params.in_size.z) + w, h, w, select(0, 1, term < end));
}

// One element of the unfolded input: (h, w) is what the first kernel entry meets, `at` its place in x. `at` may wrap
// while (h, w) lies outside; it is right again where the entry lies inside.
fn gather(at: u32, h: i32, w: i32, tap: vec4<i32>) -> f32 {
  let row = h + tap.y;
  let column = w + tap.z;
  if (row < 0 || row >= i32(params.in_size.y) || column < 0 || column >= i32(params.in_size.z)) { return 0.0; }
  return load_x(at + u32(tap.x));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = flat_group(group, groups);
  if (index >= params.items) { return; }
  var sums: Sums;
  let tile = locate(index);
  let begin = tile.split * params.split_terms;
  let end = min(begin + params.split_terms, params.in_channels * params.kernel.w);
  let first = (tile.image * params.groups + tile.g) * params.in_channels * params.in_size.w;

  // This invocation's four columns of the unfolded input. A column past the end meets nothing.
  let n = vec4<u32>(tile.n + local % b_row * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
  let oh = n / params.out_size.z;
  let h = select(vec4<i32>(-0x40000000), vec4<i32>(oh * params.stride.y) - i32(params.padding.y),
                 n < vec4<u32>(params.out_size.w));
  let w = vec4<i32>((n - oh * params.out_size.z) * params.stride.z) - i32(params.padding.z);
  let at = vec4<u32>(first) + vec4<u32>(h) * params.in_size.z + vec4<u32>(w);

  fill_taps(begin, end, 0u, local);
  var half = 0u;
  for (var k = begin; k < end; k += tile_k) {
    workgroupBarrier();
    fill_a(tile, k, end, local);
    for (var i = local / b_row; i < tile_k; i += 64u / b_row) {
      let tap = taps[half * tile_k + i];
      var v = vec4<f32>();
      if (tap.w != 0) {
        v = vec4<f32>(gather(at.x, h.x, w.x, tap), gather(at.y, h.y, w.y, tap), gather(at.z, h.z, w.z, tap),
                      gather(at.w, h.w, w.w, tap));
      }
      tile_b[i * b_row + local % b_row] = v;
    }
    half = 1u - half;
    fill_taps(k + tile_k, end, half, local);
    workgroupBarrier();
    multiply(&sums, local, min(tile_k, end - k));
  }
  finish_tile(&sums, tile, local);
}

// y[m, n], keys[position + m, n] or values[position + m, n] = turned(sum over splits of sums[split, m, n] + bias[n]): the sums
// of a product that makes queries, keys and values, turned and put where they belong. One invocation per two or four columns.
// Host guarantees: sums is [splits, m, n] in f32, m and n up to multiples of fill_m and fill_n; n is a multiple of lanes.
#option lanes 2 | 4  // columns of an invocation; heads have a multiple of them
#option splits 1..16
#option fill_m 1..128
#option fill_n 1..128
#option half_size 1..512
#require lanes == 2 || half_size % 2 == 0
#option heads 1..1024
#option kv_heads 1..1024
#option capacity 1..16777216
#option cache_type f16 | f32
#option cos_of_type f16 | f32
#option sin_of_type f16 | f32
#option y_type f16 | f32
#option live_slots
#option has_bias
#if has_bias
#option bias_type f16 | f32
#end
#let has_residual = 0
#let fixed = 0
#tensor sums raw vec$(lanes)<f32>
#include "quant/kernels/common/params.wgsl"
#if lanes == 4
#include "quant/kernels/common/rotated4.wgsl"
#else
#include "quant/kernels/common/rotated.wgsl"
#end

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  let row = params.n / $(lanes)u;
  if (i >= params.m * row) { return; }
  let m = i / row;
  let n = i % row * $(lanes)u;
  let part_m = (params.m + $(fill_m - 1)u) / $(fill_m)u * $(fill_m)u;
  let part_n = (params.n + $(fill_n - 1)u) / $(fill_n)u * $(fill_n)u;
  let at = (m * part_n + n) / $(lanes)u;
#for s in 0..splits
  let part$s = sums[at + $(s)u * (part_m * part_n / $(lanes)u)];
#end
  var sum = part0;
#for s in 1..splits
  sum += part$s;
#end
  put$(lanes)(0u, m, n, sum);
}

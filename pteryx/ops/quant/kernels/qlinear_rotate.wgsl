// y[m, n], keys[position + m, n] or values[position + m, n] = turned(sums[m, n] + bias[n]): the sums of a product that makes
// queries, keys and values, turned and put where they belong. One invocation per pair of columns. Host guarantees: sums is [m, n] in f32, n even.
#option half_size 1..512
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
#tensor sums read f32
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/rotated.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  let pairs = params.n / 2u;
  if (i >= params.m * pairs) { return; }
  let at = i * 2u;
  put2(0u, i / pairs, i % pairs * 2u, vec2<f32>(load_sums(at), load_sums(at + 1u)));
}

// Adds up the parts of a product whose k was cut and whose columns are paired: y[m, n] = silu(gate) * through, of the sums
// over splits. One invocation per eight columns of y; all parts are asked for before the first is added.
// Host guarantees: parts is [splits, m, n], m and n up to multiples of fill_m and fill_n, with paired_side gates before what
// they let through, and so on; n is a multiple of 16, paired_side of 8.
#option splits 1..16
#option fill_m 1..128
#option fill_n 1..128
#option paired_side 16 | 32
#option has_bias
#if has_bias
#option bias_type f16 | f32
#end
#option y_type f16 | f32
#tensor parts raw vec4<f32>
#let fixed = 0
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/gated8.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  let m = i / (params.n / 16u);
  let n = i % (params.n / 16u) * 8u;
  if (m >= params.m) { return; }
  let part_m = (params.m + $(fill_m - 1)u) / $(fill_m)u * $(fill_m)u;
  let part_n = (params.n + $(fill_n - 1)u) / $(fill_n)u * $(fill_n)u;
  let at = (m * part_n + n / $(paired_side)u * $(2 * paired_side)u + n % $(paired_side)u) / 4u;
#for s in 0..splits
  let from$s = at + $(s)u * (part_m * part_n / 4u);
  let part$(s)_0 = parts[from$s];
  let part$(s)_1 = parts[from$s + 1u];
  let part$(s)_2 = parts[from$s + $(paired_side / 4)u];
  let part$(s)_3 = parts[from$s + $(paired_side / 4 + 1)u];
#end
#for j in 0..4
  var sum$j = part0_$j;
#for s in 1..splits
  sum$j += part$(s)_$j;
#end
#end
  put_gated8(m, n, sum0, sum1, sum2, sum3);
}

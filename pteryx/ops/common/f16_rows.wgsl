// y[row, v] = x[row, 8v .. 8v+7] as f16: what subgroup_matrix_tile.wgsl reads as `a`. Rows are filled with 0 to `wide` vectors.
// One invocation per vector. Who includes it has params with m and k, `fn batches() -> u32`, and
//   fn four_of(row: u32, k: u32) -> vec4<f32>   at (row, k .. k+3), 0 outside
// Host guarantees: y is [batches, m up to a multiple of fill_m, wide]; rows beyond m are left as they are.
#option interleaved  // 0 4 1 5 2 6 3 7 of every eight
#option fill_m 1..128
#option wide 1..1048576
#tensor y raw_write vec4<u32>
fn eight_halves(low: vec4<f32>, high: vec4<f32>) -> vec4<u32> {
#if interleaved
  return vec4<u32>(pack2x16float(vec2<f32>(low.x, high.x)), pack2x16float(vec2<f32>(low.y, high.y)),
                   pack2x16float(vec2<f32>(low.z, high.z)), pack2x16float(vec2<f32>(low.w, high.w)));
#else
  return vec4<u32>(pack2x16float(low.xy), pack2x16float(low.zw), pack2x16float(high.xy), pack2x16float(high.zw));
#end
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  const wide = $(wide)u;
  let i = flat_id(group, groups, local, 64u);
  if (i >= batches() * params.m * wide) { return; }
  let row = i / wide;
  let k = i % wide * 8u;
  let filled = row / params.m * ((params.m + $(fill_m - 1)u) / $(fill_m)u * $(fill_m)u) + row % params.m;
  // What f16 cannot hold becomes the largest it can.
  let most = vec4<f32>(65504.0);
  y[filled * wide + i % wide] =
      eight_halves(clamp(four_of(row, k), -most, most), clamp(four_of(row, k + 4u), -most, most));
}

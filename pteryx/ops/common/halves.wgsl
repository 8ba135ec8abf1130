// y[row, v] = halves(x[row, 8v .. 8v+3], x[row, 8v+4 .. 8v+7]):
// rows as f16 in vectors of eight, each row filled with 0 to a multiple of 64: what matrix_tile.wgsl reads as `a`.
// One invocation per vector. The prelude gives `fn batches() -> u32`,
//   fn four_of(row: u32, k: u32) -> vec4<f32>                     at (row, k .. k+3), 0 outside
//   fn halves(low: vec4<f32>, high: vec4<f32>) -> vec4<u32>       eight of k in the order the weights have them
// Host guarantees: y has a vector for every eight of the filled rows.
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  let wide = (params.k + 63u) / 64u * 8u;
  if (i >= batches() * params.m * wide) { return; }
  let row = i / wide;
  let k = i % wide * 8u;
  // What f16 cannot hold becomes the largest it can.
  let most = vec4<f32>(65504.0);
  y[i] = halves(clamp(four_of(row, k), -most, most), clamp(four_of(row, k + 4u), -most, most));
}

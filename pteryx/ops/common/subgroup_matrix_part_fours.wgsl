// fn put4(part: u32, m: u32, n: u32, v: vec4<f32>) of subgroup_matrix_results.wgsl for sums as they are: y lies as
// subgroup_matrix_parts.wgsl has it, so that every (m, n) of a tile has its place.
#option y_stride 0..16777216  // n up to whole tiles; 0: reckoned
#tensor y raw_write vec4<f32>
fn put4(part: u32, m: u32, n: u32, v: vec4<f32>) {
#if y_stride == 0
  let stride = (params.n + tile_n - 1u) / tile_n * tile_n;
#else
  const stride = $(y_stride)u;
#end
  let rows = (params.m + tile_m - 1u) / tile_m * tile_m;
  y[((part * rows + m) * stride + n) / 4u] = v;
}

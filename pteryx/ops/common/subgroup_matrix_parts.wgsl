// The sums as they are, behind subgroup_matrix_sums.wgsl: y is f32 [splits, batches, m, n], m and n up to whole tiles.
#option y_stride 0..16777216  // n up to whole tiles; 0: reckoned
#if y_stride == 0
  let stride = tiles_n * tile_n;
#else
  const stride = $(y_stride)u;
#end
  let corner = (part * tiles_m * tile_m + first_m + own_m * side_m) * stride + first_n + own_n * side_n;
#for i in 0..pieces_m
#for j in 0..pieces_n
  subgroupMatrixStore<row_major>(&y, corner + $(i * 16)u * stride + $(j * 16)u, sum$(i)_$(j), stride);
#end
#end

// What matrix_tile.wgsl does with 16 x 16 matrices of a subgroup of 32. A prelude of it; offsets and strides count vectors
// of eight f16 in the tiles.
alias left_matrix = subgroup_matrix_left<f16, 16, 16>;
alias right_matrix = subgroup_matrix_right<f16, 16, 16>;
alias sum_matrix = subgroup_matrix_result<f32, 16, 16>;

fn load_left(offset: u32) -> left_matrix {
  return subgroupMatrixLoad<left_matrix, row_major>(&tile_a, offset, wide_a);
}
fn load_right(offset: u32) -> right_matrix {
  if (along_k) { return subgroupMatrixLoad<right_matrix, col_major>(&tile_b, offset, wide_b); }
  return subgroupMatrixLoad<right_matrix, row_major>(&tile_b, offset, wide_b);
}
fn multiply_add(left: left_matrix, right: right_matrix, sum: sum_matrix) -> sum_matrix {
  return subgroupMatrixMultiplyAccumulate(left, right, sum);
}
fn store_sum(offset: u32, sum: sum_matrix) { subgroupMatrixStore<row_major>(&tile_y, offset, sum, 16u); }

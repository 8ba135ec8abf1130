// What attention_matrix.wgsl does with 16 x 16 matrices of a subgroup of 32. A prelude of it; offsets and strides count
// vectors of eight f16 in tile_kv and tile_p, and numbers in tile_s.
alias left_matrix = subgroup_matrix_left<f16, 16, 16>;
alias right_matrix = subgroup_matrix_right<f16, 16, 16>;
alias sum_matrix = subgroup_matrix_result<f32, 16, 16>;

// Of loops over registers.
fn bound(n: u32) -> u32 { return n; }
fn load_q(offset: u32) -> left_matrix {
  return subgroupMatrixLoad<left_matrix, row_major>(&tile_kv, offset, wide_kv);
}
fn load_weights(offset: u32) -> left_matrix {
  return subgroupMatrixLoad<left_matrix, row_major>(&tile_p, offset, wide_p);
}
fn load_k(offset: u32) -> right_matrix {
  return subgroupMatrixLoad<right_matrix, col_major>(&tile_kv, offset, wide_kv);
}
fn load_v(offset: u32) -> right_matrix {
  return subgroupMatrixLoad<right_matrix, row_major>(&tile_kv, offset, wide_kv);
}
fn score_add(left: left_matrix, right: right_matrix, sum: sum_matrix) -> sum_matrix {
  return subgroupMatrixMultiplyAccumulate(left, right, sum);
}
fn value_add(left: left_matrix, right: right_matrix, sum: sum_matrix) -> sum_matrix {
  return subgroupMatrixMultiplyAccumulate(left, right, sum);
}
fn store_sum(offset: u32, sum: sum_matrix) { subgroupMatrixStore<row_major>(&tile_s, offset, sum, wide_s); }
fn load_sum(offset: u32) -> sum_matrix {
  return subgroupMatrixLoad<sum_matrix, row_major>(&tile_s, offset, wide_s);
}

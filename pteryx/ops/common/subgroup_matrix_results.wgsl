// The sums behind subgroup_matrix_sums.wgsl, four neighbours at a time: fn put4(part: u32, m: u32, n: u32, v: vec4<f32>).
// Matrices have no elements to be read: they go through workgroup memory, one or two of each subgroup at a time.
#let stage = 2 - pieces_n % 2
  for (var round = 0u; round < $(pieces_m * pieces_n / stage)u; round++) {
    switch (round) {
#for i in 0..pieces_m
#for j in 0..pieces_n / stage
      case $(i * (pieces_n / stage) + j)u: {
#for c in 0..stage
        subgroupMatrixStore<row_major>(&tile_y[owner], $(c * 4)u, sum$(i)_$(j * stage + c), wide_y);
#end
      }
#end
#end
      default: {}
    }
    workgroupBarrier();
    let m = first_m + own_m * side_m + round / $(pieces_n / stage)u * 16u;
    let n = first_n + own_n * side_n + round % $(pieces_n / stage)u * $(stage * 16)u;
    for (var i = 0u; i < $(stage * 2)u; i++) {
      let row = (lane + i * 32u) / $(stage * 4)u;
      let column = (lane + i * 32u) % $(stage * 4)u;
      put4(part, m + row, n + column * 4u, tile_y[owner][row * wide_y + column]);
    }
    workgroupBarrier();
  }

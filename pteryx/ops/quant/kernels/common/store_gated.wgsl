// The sums of a tile whose columns are paired, multiplied: those of a subgroup are gates, then what they let through. They go
// through workgroup memory, a matrix of each at a time, and every invocation makes eight results of a row.
#let half_n = pieces_n / 2
  for (var round = 0u; round < $(pieces_m * half_n)u; round++) {
    switch (round) {
#for i in 0..pieces_m
#for j in 0..half_n
      case $(i * half_n + j)u: {
        subgroupMatrixStore<row_major>(&tile_y[owner], 0u, sum$(i)_$(j), wide_y);
        subgroupMatrixStore<row_major>(&tile_y[owner], 4u, sum$(i)_$(j + half_n), wide_y);
      }
#end
#end
      default: {}
    }
    workgroupBarrier();
    let at = lane / 2u * wide_y + lane % 2u * 2u;
    put_gated8(first_m + own_m * side_m + round / $(half_n)u * 16u + lane / 2u,
               (first_n + own_n * side_n) / 2u + round % $(half_n)u * 16u + lane % 2u * 8u,
               tile_y[owner][at], tile_y[owner][at + 1u], tile_y[owner][at + 4u], tile_y[owner][at + 5u]);
    workgroupBarrier();
  }

// The sums of a tile, sum0_0 .., of the subgroup `owner` at (own_m, own_n) of the tile at (first_m, first_n) of `part`.
// A part of main, whose builtins are group, groups and local.
#let tile_rows = pieces_m * 16 * subgroups_m
#let tile_columns = pieces_n * 16 * (4 / subgroups_m)
#let all_a = tile_rows * depth_sixteens * 2
#let loads_a = (all_a + 127) / 128
#let all_b = tile_columns * depth_sixteens * 16 / unit_b
#let loads_b = (all_b + 127) / 128
// Rows that one load of all invocations covers: what differs from load to load is then known, and takes no registers.
#let pass_a = 64 / depth_sixteens
#if along_k
#let pass_b = 8 * unit_b / depth_sixteens
#let rows_of_b = pieces_n * 16
#else
#let pass_b = 128 / (pieces_n * 2 * (4 / subgroups_m))
#let rows_of_b = 1
#end
  let tiles_m = (params.m + tile_m - 1u) / tile_m;
  let tiles_n = (params.n + tile_n - 1u) / tile_n;
  let tile = flat_group(group, groups);
  let part = tile / tiles_m / tiles_n;
  if (part >= batches() * params.splits) { return; }
  let batch = part % batches();
  let first_m = tile % tiles_m * tile_m;
  let first_n = tile / tiles_m % tiles_n * tile_n;
  let owner = local / 32u;
  let lane = local % 32u;
  let own_m = owner % $(subgroups_m)u;
  let own_n = owner / $(subgroups_m)u;
#if steps == 0
  let steps = params.chunk / depth;
  let wide = params.splits * steps * row_loads_a;
#else
  const steps = $(steps)u;
  const wide = $(steps * splits)u * row_loads_a;
#end
  let first_step = part / batches() * steps;
#if a_filled
  let first_row = batch * (tiles_m * tile_m) + first_m;
#else
  let first_row = batch * params.m + first_m;
  let last_row = batch * params.m + params.m - 1u;
#end

  let a_row = local / row_loads_a;
  let a_column = local % row_loads_a;
  let b_row = local / row_loads_b;
  let b_column = local % row_loads_b * $(unit_b)u;
#if a_filled
  let a_at = (first_row + a_row) * wide + first_step * row_loads_a + a_column;
#else
#for i in 0..loads_a
  let a_at$i = min(first_row + a_row + $(i * pass_a)u, last_row) * wide + first_step * row_loads_a + a_column;
#end
#end

#for i in 0..pieces_m
#for j in 0..pieces_n
  var sum$(i)_$(j) = subgroup_matrix_result<f32, 16, 16>();
#end
#end
#if from_residual
  if (first_m + tile_m <= params.m) {
    let start = (first_m + own_m * side_m) * $(y_stride)u + first_n + own_n * side_n;
#for i in 0..pieces_m
#for j in 0..pieces_n
    sum$(i)_$(j) = subgroupMatrixLoad<subgroup_matrix_result<f32, 16, 16>, row_major>(
        &residual, start + $(i * 16)u * $(y_stride)u + $(j * 16)u, $(y_stride)u);
#end
#end
  }
#end
#for i in 0..loads_a
  var next_a$i: vec4<u32>;
#end
#for i in 0..loads_b
  var next_b$i: vec4<u32>;
#if scaled_b
  var next_scale$i: RawScale;
#end
#end
#include "common/subgroup_matrix_fetch.wgsl" at=0u
#if rolled
  for (var step = 0u; step < min(params.chunk / depth, steps); step++) {
#else
  for (var step = 0u; step < steps; step++) {
#end
    workgroupBarrier();
#for i in 0..loads_a
#if (i + 1) * 128 > all_a
    if (local < $(all_a - i * 128)u)
#end
#if pieces_m * 16 % pass_a == 0
    { tile_a[$(i * pass_a / (pieces_m * 16))u][(a_row + $(i * pass_a % (pieces_m * 16))u) * wide_a + a_column] = next_a$i; }
#else
    { tile_a[(a_row + $(i * pass_a)u) / side_m][(a_row + $(i * pass_a)u) % side_m * wide_a + a_column] = next_a$i; }
#end
#end
#for i in 0..loads_b
#if (i + 1) * 128 > all_b
    if (local < $(all_b - i * 128)u)
#end
    {
#if !along_k
      tile_b[b_column / side_n][(b_row + $(i * pass_b)u) * wide_b + b_column % side_n / 8u] = next_b$i;
#else
#if rows_of_b % pass_b == 0
      const strip = $(i * pass_b / rows_of_b)u;
      let slot = (b_row + $(i * pass_b % rows_of_b)u) * wide_b + b_column / 8u;
#elif pass_b % rows_of_b == 0
      let strip = b_row / side_n + $(i * pass_b / rows_of_b)u;
      let slot = b_row % side_n * wide_b + b_column / 8u;
#else
      let strip = (b_row + $(i * pass_b)u) / side_n;
      let slot = (b_row + $(i * pass_b)u) % side_n * wide_b + b_column / 8u;
#end
#if scaled_b
      let scale = scale_b(next_scale$i, first_n + b_row + $(i * pass_b)u, (first_step + step) * depth + b_column);
#end
#if unit_b == 8
      tile_b[strip][slot] = next_b$i;
#elif unit_b == 16
      tile_b[strip][slot] = expand_b(next_b$i[0], next_b$i[1], scale);
      tile_b[strip][slot + 1u] = expand_b(next_b$i[2], next_b$i[3], scale);
#else
#for j in 0..4
      tile_b[strip][slot + $(j)u] = expand_b(next_b$i[$j], scale);
#end
#end
#end
    }
#end
    workgroupBarrier();
    let next = min(step + 1u, steps - 1u);
#include "common/subgroup_matrix_fetch.wgsl" at=next
#for s in 0..depth_sixteens
    {
#for i in 0..pieces_m
      let left$i = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(
          &tile_a[own_m], $(i * 16)u * wide_a + $(s * 2)u, wide_a);
#end
#for j in 0..pieces_n
#if along_k
      let right$j = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(
          &tile_b[own_n], $(j * 16)u * wide_b + $(s * 2)u, wide_b);
#else
      let right$j = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(
          &tile_b[own_n], $(s * 16)u * wide_b + $(j * 2)u, wide_b);
#end
#for i in 0..pieces_m
      sum$(i)_$(j) = subgroupMatrixMultiplyAccumulate(left$i, right$j, sum$(i)_$(j));
#end
#end
    }
#end
  }

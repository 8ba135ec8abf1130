// The next tiles of a and b, those of step `first_step + at`, into registers. A part of subgroup_matrix_sums.wgsl.
#option at text
#for i in 0..loads_a
#if (i + 1) * 128 > all_a
  if (local < $(all_a - i * 128)u)
#end
#if a_filled
  { next_a$i = a[a_at + $(i * pass_a)u * wide + $at * row_loads_a]; }
#else
  { next_a$i = a[a_at$i + $at * row_loads_a]; }
#end
#end
#for i in 0..loads_b
#if (i + 1) * 128 > all_b
  if (local < $(all_b - i * 128)u)
#end
  {
#if along_k
    let n = first_n + b_row + $(i * pass_b)u;
    let k = (first_step + $at) * depth + b_column;
#else
    let n = first_n + b_column;
    let k = (first_step + $at) * depth + b_row + $(i * pass_b)u;
#end
    next_b$i = raw_b(batch, n, k);
#if scaled_b
    next_scale$i = raw_scale_b(n, k);
#end
  }
#end

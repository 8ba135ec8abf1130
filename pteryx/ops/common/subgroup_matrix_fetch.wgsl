// The next tiles of a and b, those of step `first_step + at`, into registers. A part of subgroup_matrix_sums.wgsl.
#option at text
#for i in 0..loads_a
#if (i + 1) * 128 > all_a
  if (local < $(all_a - i * 128)u)
#end
  {
    let row = (local + $(i * 128)u) / row_loads_a;
#if a_filled
    next_a$i = a[(first_row + row) * wide + (first_step + $at) * row_loads_a + (local + $(i * 128)u) % row_loads_a];
#else
    next_a$i = a[min(first_row + row, last_row) * wide + (first_step + $at) * row_loads_a + (local + $(i * 128)u) % row_loads_a];
#end
  }
#end
#for i in 0..loads_b
#if (i + 1) * 128 > all_b
  if (local < $(all_b - i * 128)u)
#end
  {
    let row = (local + $(i * 128)u) / row_loads_b;
    let column = (local + $(i * 128)u) % row_loads_b * $(unit_b)u;
#if along_k
    let n = first_n + row;
    let k = (first_step + $at) * depth + column;
#else
    let n = first_n + column;
    let k = (first_step + $at) * depth + row;
#end
    next_b$i = raw_b(batch, n, k);
#if scaled_b
    next_scale$i = raw_scale_b(n, k);
#end
  }
#end

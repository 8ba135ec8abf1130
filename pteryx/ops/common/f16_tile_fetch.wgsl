// The next tiles, those of step `first_step + at`, into registers. A part of f16_tile_sums.wgsl.
#option at text
#for v in 0..row_fours
#if a_filled
  next_a$v = a[(first_m + a_row) * wide + (first_step + $at) * 4u + a_eight + $(v)u];
#else
  next_a$v = a[min(first_m + a_row, params.m - 1u) * wide + (first_step + $at) * 4u + a_eight + $(v)u];
#end
#end
#if unit_b == 32
  {
    let raw = raw_b(0u, first_n + b_row, (first_step + $at) * 32u);
    next_b = select(raw.xy, raw.zw, half == 1u);
  }
#elif unit_b == 16
  next_b = raw_b(0u, first_n + b_row, (first_step + $at) * 32u + half * 16u);
#else
  next_b0 = raw_b(0u, first_n + b_row, (first_step + $at) * 32u + half * 16u);
  next_b1 = raw_b(0u, first_n + b_row, (first_step + $at) * 32u + half * 16u + 8u);
#end
#if scaled_b
  next_scale = raw_scale_b(first_n + b_row, (first_step + $at) * 32u + half * 16u);
#end

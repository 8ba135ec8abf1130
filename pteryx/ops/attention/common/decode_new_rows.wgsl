// Of attention_decode, before the keys of the caches: the new rows of split 0, one team each, and the caches get them.
#for c in 0..columns
  let kept_k_low_$(c) = kept_k(low_k_rows(new_k_$(c)));
#if unit == 8
  let kept_k_high_$(c) = kept_k(high_k_rows(new_k_$(c)));
#end
#end
#for h in 0..shared
  var new_score_$(h) = 0.0;
#for c in 0..columns
  new_score_$(h) += dot(q_low_$(h)_$(c), kept_k_low_$(c));
#if unit == 8
  new_score_$(h) += dot(q_high_$(h)_$(c), kept_k_high_$(c));
#end
#end
  new_score_$(h) += subgroupShuffleXor(new_score_$(h), 1u);
  new_score_$(h) += subgroupShuffleXor(new_score_$(h), 2u);
#if team == 8
  new_score_$(h) += subgroupShuffleXor(new_score_$(h), 4u);
#end
#end
  if (split == 0u && own < params.rows) {
    if (end + own < keys_of(row)) {
#for h in 0..shared
      peak_$(h) = new_score_$(h);
      total_$(h) = 1.0;
#for c in 0..columns
      sum_low_$(h)_$(c) = kept_v(low_v_rows(new_v_$(c)));
#if unit == 8
      sum_high_$(h)_$(c) = kept_v(high_v_rows(new_v_$(c)));
#end
#end
#end
    }
    if (row == 0u && head % params.group == 0u) {
      let to = k_at + (end + own) * k_row;
#for c in 0..columns
#if idle && c + 1 == columns
      if (has_last) {
        write_k(to + column_$(c), new_k_$(c));
        write_v(to + column_$(c), new_v_$(c));
      }
#else
      write_k(to + column_$(c), new_k_$(c));
      write_v(to + column_$(c), new_v_$(c));
#end
#end
    }
  }

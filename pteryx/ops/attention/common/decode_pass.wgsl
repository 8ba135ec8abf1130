// Of attention_decode: what the keys of a pass, which are loaded, add to the sums of each head.
#for s in 0..steps
    let key_$(s) = base + own + $(s)u * teams;
#for h in 0..shared
    var score_$(h)_$(s) = 0.0;
#end
#for c in 0..columns
    let k_low_$(s)_$(c) = low_k(k_$(s)_$(c));
#for h in 0..shared
    score_$(h)_$(s) += dot(q_low_$(h)_$(c), k_low_$(s)_$(c));
#end
#if unit == 8
    let k_high_$(s)_$(c) = high_k(k_$(s)_$(c));
#for h in 0..shared
    score_$(h)_$(s) += dot(q_high_$(h)_$(c), k_high_$(s)_$(c));
#end
#end
#end
#end
#for d in 0..2 + (team == 8)
#for s in 0..steps
#for h in 0..shared
    score_$(h)_$(s) += subgroupShuffleXor(score_$(h)_$(s), $(1 + d + d / 2)u);
#end
#end
#end
#for h in 0..shared
    var next_$(h) = peak_$(h);
#for s in 0..steps
    score_$(h)_$(s) =
        select(lowest, masked(score_$(h)_$(s), batch, head + $(h)u, row, min(key_$(s), end - 1u)), key_$(s) < end);
    next_$(h) = max(next_$(h), score_$(h)_$(s));
#end
#end
#for d in 0..3
#if team * (1 + d + d / 2) < block
#for h in 0..shared
    next_$(h) = max(next_$(h), subgroupShuffleXor(next_$(h), $(team * (1 + d + d / 2))u));
#end
#end
#end
#for h in 0..shared
    let fade_$(h) = decay(peak_$(h) - next_$(h));
    peak_$(h) = next_$(h);
    total_$(h) *= fade_$(h);
#for c in 0..columns
    sum_low_$(h)_$(c) *= fade_$(h);
#if unit == 8
    sum_high_$(h)_$(c) *= fade_$(h);
#end
#end
#end
    // What lies behind the last key may be anything: it is not even multiplied.
#for s in 0..steps
    if (key_$(s) < end) {
#for h in 0..shared
      let weight_$(h) = decay(score_$(h)_$(s) - peak_$(h));
      total_$(h) += weight_$(h);
#end
#for c in 0..columns
      let v_low_$(c) = low_v(v_$(s)_$(c));
#for h in 0..shared
      sum_low_$(h)_$(c) += weight_$(h) * v_low_$(c);
#end
#if unit == 8
      let v_high_$(c) = high_v(v_$(s)_$(c));
#for h in 0..shared
      sum_high_$(h)_$(c) += weight_$(h) * v_high_$(c);
#end
#end
#end
    }
#end

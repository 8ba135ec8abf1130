// The highest of a workgroup of `threads` invocations, and whose it is, of equals the lowest id. Numbers are compared as keys:
// integers of the same order. A barrier stands between two calls of reduce_best, which all invocations make.
#option lanes 0 | 4 | 8 | 16 | 32  // that subgroups have at least; 0: there are none
struct Best { key: u32, id: u32 }

fn key_of(v: f32) -> u32 {
  let bits = bitcast<u32>(v);
  return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}
fn number_of(key: u32) -> f32 { return bitcast<f32>(select(~key, key & 0x7fffffffu, (key >> 31u) == 1u)); }

fn better(a: Best, b: Best) -> Best {
  if (b.key > a.key || (b.key == a.key && b.id < a.id)) { return b; }
  return a;
}
#if lanes > 0
#enable subgroups
var<workgroup> best: array<Best, $(threads / lanes)>;

fn best_of_subgroup(b: Best) -> Best {
  let key = subgroupMax(b.key);
  return Best(key, subgroupMin(select(0xffffffffu, b.id, b.key == key)));
}
fn reduce_best(local: u32, own: Best) -> Best {
  let part = best_of_subgroup(own);
  if (local % $(lanes)u == 0u) { best[local / $(lanes)u] = part; }
  workgroupBarrier();
  var all = best[local % $(lanes)u % $(threads / lanes)u];
  for (var i = $(lanes)u + local % $(lanes)u; i < $(threads / lanes)u; i += $(lanes)u) { all = better(all, best[i]); }
  return best_of_subgroup(all);
}
#else
var<workgroup> best: array<Best, threads>;

fn reduce_best(local: u32, own: Best) -> Best {
  best[local] = own;
  workgroupBarrier();
  for (var half = threads / 2u; half > 0u; half /= 2u) {
    if (local < half) { best[local] = better(best[local], best[local + half]); }
    workgroupBarrier();
  }
  return best[0];
}
#end

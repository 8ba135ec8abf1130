// The highest number of a workgroup of `threads` invocations, and whose it is.
var<workgroup> best: array<f32, threads>;
var<workgroup> best_id: array<u32, threads>;

// The highest of what invocations found, of equals the lowest id, in best[0] and best_id[0].
fn reduce_best(local: u32) {
  workgroupBarrier();
  for (var half = threads / 2u; half > 0u; half /= 2u) {
    if (local < half) {
      let other = best[local + half];
      let better = other > best[local] || (other == best[local] && best_id[local + half] < best_id[local]);
      if (better) {
        best[local] = other;
        best_id[local] = best_id[local + half];
      }
    }
    workgroupBarrier();
  }
}

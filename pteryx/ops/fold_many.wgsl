// Sums `count` values of each invocation over teams of `team` neighbouring invocations: within blocks of `block` by
// exchanging halves, so that `width` sums cost little more than one, then workgroup memory across the blocks of a team.
// The prelude gives `team`, `wg_size` and `block` (powers of two; block is at most the size of a subgroup and at most a
// team, and neighbouring invocations share subgroups), `count` and `width` (a power of two that divides count, at most block).
const blocks: u32 = team / block;
var<workgroup> fold_parts: array<f32, wg_size / block * count>;

// Every invocation of the workgroup calls it, once; then `folded` gives the sums.
fn fold_many(values: array<f32, count>, local: u32) {
  var v = values;
  let place = local % block;
  for (var c = 0u; c < count; c += width) {
    var step = block / 2u;
    for (var half = width / 2u; half > 0u; half /= 2u) {
      let upper = (place & step) != 0u;
      for (var i = c; i < c + half; i++) {
        let kept = select(v[i], v[i + half], upper);
        v[i] = kept + subgroupShuffleXor(select(v[i + half], v[i], upper), step);
      }
      step /= 2u;
    }
    var total = v[c];
    for (; step > 0u; step /= 2u) { total += subgroupShuffleXor(total, step); }
    if (place % (block / width) == 0u) { fold_parts[local / block * count + c + place / (block / width)] = total; }
  }
  workgroupBarrier();
}

// Sum i of a team of the workgroup.
fn folded(which: u32, i: u32) -> f32 {
  var total = 0.0;
  for (var b = 0u; b < blocks; b++) { total += fold_parts[(which * blocks + b) * count + i]; }
  return total;
}

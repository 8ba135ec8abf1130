// Sums `fours` vectors of each invocation over teams of `team` neighbouring invocations: within blocks of `block` by
// exchanging halves, so that the four sums of a vector cost little more than one, then workgroup memory across the blocks
// of a team.
// The prelude gives `team`, `wg_size` and `block` (powers of two; block is at least 4, at most the size of a subgroup and at
// most a team, and neighbouring invocations share subgroups) and `fours`.
const blocks: u32 = team / block;
var<workgroup> fold_parts: array<f32, wg_size / block * fours * 4u>;

// Every invocation of the workgroup calls it, once for each vector; after a barrier `folded` gives the sums.
fn fold_four(i: u32, v: vec4<f32>, local: u32) {
  let place = local % block;
  let high = (place & (block / 2u)) != 0u;
  let two = select(v.xy, v.zw, high) + subgroupShuffleXor(select(v.zw, v.xy, high), block / 2u);
  let odd = (place & (block / 4u)) != 0u;
  var total = select(two.x, two.y, odd) + subgroupShuffleXor(select(two.y, two.x, odd), block / 4u);
  for (var step = block / 8u; step > 0u; step /= 2u) { total += subgroupShuffleXor(total, step); }
  if (place % (block / 4u) == 0u) { fold_parts[(local / block * fours + i) * 4u + place / (block / 4u)] = total; }
}

// Sums c and c + 1 of vector i of a team of the workgroup.
fn folded(which: u32, i: u32, c: u32) -> vec2<f32> {
  var total = vec2<f32>(0.0);
  for (var b = 0u; b < blocks; b++) {
    let at = ((which * blocks + b) * fours + i) * 4u + c;
    total += vec2<f32>(fold_parts[at], fold_parts[at + 1u]);
  }
  return total;
}

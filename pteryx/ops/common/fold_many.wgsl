// Sums `vectors` vectors of four of each invocation over teams of `team` neighbouring invocations: within blocks of `block` by
// exchanging halves, so that the four sums of a vector cost little more than one, then workgroup memory across the blocks
// of a team.
// Host guarantees: team, wg_size and block are powers of two; block is at most the size of a subgroup and at most a team,
// which is at most a workgroup; neighbouring invocations share subgroups.
#option team 1..1024
#option wg_size 1..1024
#option block 4..128
#option vectors 1..64
#enable subgroups
const team: u32 = $(team)u;
const wg_size: u32 = $(wg_size)u;
const block: u32 = $(block)u;
const vectors: u32 = $(vectors)u;
const blocks: u32 = $((team + block - 1) / block)u;
var<workgroup> fold_parts: array<f32, $((wg_size + block - 1) / block * vectors * 4)>;

// Every invocation of the workgroup calls it, once for each vector; after a barrier `folded` gives the sums.
fn fold_four(i: u32, v: vec4<f32>, local: u32) {
  let place = local % block;
  let high = (place & (block / 2u)) != 0u;
  let two = select(v.xy, v.zw, high) + subgroupShuffleXor(select(v.zw, v.xy, high), block / 2u);
  let odd = (place & (block / 4u)) != 0u;
  var total = select(two.x, two.y, odd) + subgroupShuffleXor(select(two.y, two.x, odd), block / 4u);
  for (var step = block / 8u; step > 0u; step /= 2u) { total += subgroupShuffleXor(total, step); }
  if (place % (block / 4u) == 0u) { fold_parts[(local / block * vectors + i) * 4u + place / (block / 4u)] = total; }
}

// Sums c and c + 1 of vector i of a team of the workgroup.
fn folded(which: u32, i: u32, c: u32) -> vec2<f32> {
  var total = vec2<f32>(0.0);
  for (var b = 0u; b < blocks; b++) {
    let at = ((which * blocks + b) * vectors + i) * 4u + c;
    total += vec2<f32>(fold_parts[at], fold_parts[at + 1u]);
  }
  return total;
}

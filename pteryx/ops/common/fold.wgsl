// fold(v, local): folds one value per invocation within teams of `team` neighbouring invocations. Every invocation of the
// workgroup calls it and gets its team's result. By a tree in workgroup memory, or, where there are blocks, by shuffles
// within blocks of `block` invocations, then workgroup memory across the blocks of a team.
// Host guarantees: powers of two; team <= wg_size; block is at most the size of a subgroup, and neighbouring invocations
// share subgroups. Who includes it has `alias acc` and `fn combine(a: acc, b: acc) -> acc`.
#option team 1..1024
#option wg_size 1..1024
#option block 0..1024
const team: u32 = $(team)u;
const wg_size: u32 = $(wg_size)u;
var<workgroup> fold_cells: array<acc, wg_size>;

#if block == 0
fn fold(v: acc, local: u32) -> acc {
  if (team == 1u) { return v; }
  let lane = local & (team - 1u);
  fold_cells[local] = v;
  var width = team;
  while (width > 1u) {
    let quarter = (width + 3u) / 4u;
    workgroupBarrier();
    if (lane < quarter) {
      var part = fold_cells[local];
      for (var i = lane + quarter; i < width; i += quarter) { part = combine(part, fold_cells[local - lane + i]); }
      fold_cells[local] = part;
    }
    width = quarter;
  }
  workgroupBarrier();
  let folded = fold_cells[local - lane];
  workgroupBarrier();  // before the next fold writes
  return folded;
}
#else
#enable subgroups
const block: u32 = $(block)u;

fn fold_block(v: acc, width: u32) -> acc {
  var folded = v;
  for (var step = 1u; step < width; step <<= 1u) { folded = combine(folded, subgroupShuffleXor(folded, step)); }
  return folded;
}

fn fold(v: acc, local: u32) -> acc {
  let folded = fold_block(v, min(team, block));
  if (team <= block) { return folded; }
  if ((local & (block - 1u)) == 0u) { fold_cells[local / block] = folded; }
  workgroupBarrier();
  const cells = max(team / block, 1u);
  const share = min(cells, block);
  let first = (local & ~(team - 1u)) / block + (local & (share - 1u));
  var part = fold_cells[first];
  for (var i = share; i < cells; i += share) { part = combine(part, fold_cells[first + i]); }
  workgroupBarrier();  // before the next fold writes
  return fold_block(part, share);
}
#end

// Folds one value per invocation within teams of `team` neighbouring invocations: shuffles within blocks of `block`
// invocations, then workgroup memory across the blocks of a team.
// Every invocation of the workgroup calls it and gets its team's result.
// The prelude gives `team`, `wg_size` and `block` (powers of two; block is at most the size of a subgroup, and
// neighbouring invocations share subgroups), `alias acc` and `fn combine(a: acc, b: acc) -> acc`.
var<workgroup> fold_cells: array<acc, wg_size>;

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

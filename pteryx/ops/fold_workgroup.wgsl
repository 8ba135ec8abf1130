// Folds one value per invocation within teams of `team` neighbouring invocations, by a tree in workgroup memory.
// Every invocation of the workgroup calls it and gets its team's result.
// The prelude gives `team` and `wg_size` (powers of two, team <= wg_size), `alias acc` and `fn combine(a: acc, b: acc) -> acc`.
var<workgroup> fold_cells: array<acc, wg_size>;

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

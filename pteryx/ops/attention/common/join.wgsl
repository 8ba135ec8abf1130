// Joins what `slots` sets of set_size invocations of a workgroup have of each row: `sum`, weighed by `peak` and `total`. The
// first set goes on with all of it. Who includes it has `slot`, `own_head`, `own_quad`, `sums` and `marks`.
#option slots 1..16
#option shared 1 | 2
  sums[local] = sum;
  if (own_quad == 0u && slot < slots) { marks[slot * $(shared)u + own_head] = vec2<f32>(peak, total); }
  workgroupBarrier();
  if (local >= set_size) { return; }
#include "attention/common/join_sets.wgsl" sets=$slots

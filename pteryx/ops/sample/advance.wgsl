// staging[token] = y[0], staging[word] += amount for every move: what a run leaves for the next (feed.wgsl), where the node that
// makes the token cannot do that itself. One workgroup.
// Host guarantees: the rule has at most most_moves moves.
#option most_moves 1..64
#include "sample/common/feed.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32) {
  let ahead = look_ahead(local);
  let drawn = y[0];
  workgroupBarrier();
  feed(local, ahead, drawn);
}

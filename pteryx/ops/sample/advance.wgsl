// y[0] is the token of the next run: see feed.wgsl. One workgroup, for runs whose token comes from a node that cannot do that.
#option most_moves 1..64
#include "sample/common/feed.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32) {
  let ahead = look_ahead(local);
  let drawn = y[0];
  workgroupBarrier();
  feed(local, ahead, drawn);
}

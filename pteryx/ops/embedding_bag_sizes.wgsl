// y[i] = the bag that index i is in, how many rows of bag i count, or 0.
// One element of y per invocation.
// Host guarantees: n elements; offsets go up. Those outside are taken for 0.
#option answer bag_of | size_of | nothing
#option arg 0..63  // of the node: the offsets
#option from_end
#option reports
#tensor indices read i32
#tensor offsets read i32
#tensor y elements i32
#include "common/index.wgsl"

struct Params { n: u32, bags: u32, indices: u32, padding: i32, fault: u32 }
@group(0) @binding(0) var<uniform> params: Params;

#include "common/place.wgsl" name=offsets

// The last bag that begins at or before index i.
fn bag_of(i: u32) -> i32 {
  var low = 0u;
  var high = params.bags;
  while (low < high) {
    let middle = (low + high) / 2u;
    if (load_offsets(middle) <= i32(i)) { low = middle + 1u; } else { high = middle; }
  }
  return max(i32(low) - 1, 0);
}

fn size_of(bag: u32) -> i32 {
  let all = i32(params.indices);
  let begin = max(place_offsets(bag, all + 1), 0);
  var end = all;
  if (bag + 1u < params.bags) { end = max(place_offsets(bag + 1u, all + 1), 0); }
  var counted = 0;
  for (var i = begin; i < end; i++) {
    if (load_indices(u32(i)) != params.padding) { counted++; }
  }
  return counted;
}

fn nothing(i: u32) -> i32 { return 0; }

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.n) { return; }
  store_y(i, $(answer)(i));
}

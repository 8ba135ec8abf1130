// How many workgroups run at the same time: each counts itself in, works for a while, and counts
// itself out. y is the most there were, those there are, and what keeps the work.
// SPDX-License-Identifier: BSD-3-Clause
@group(0) @binding(0) var<uniform> n: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>, 3>;
@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) i: u32) {
  if (i == 0u) { atomicMax(&y[0], atomicAdd(&y[1], 1u) + 1u); }
  storageBarrier();
  var a = f32(i);
  for (var k = 0u; k < n.x; k++) { a = fma(a, 0.5, 1.0); }
  if (a < 0.0) { atomicAdd(&y[2], 1u); }
  storageBarrier();
  if (i == 0u) { atomicSub(&y[1], 1u); }
}

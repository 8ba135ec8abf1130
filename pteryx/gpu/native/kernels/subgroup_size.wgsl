// The size of subgroups, as a kernel sees it.
// SPDX-License-Identifier: BSD-3-Clause
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(subgroup_size) size: u32, @builtin(local_invocation_index) i: u32) {
  if (i == 0u) { y[0] = size; }
}

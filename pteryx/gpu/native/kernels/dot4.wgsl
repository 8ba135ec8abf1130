// Whether it compiles.
// SPDX-License-Identifier: BSD-3-Clause
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1)
fn main() { y[0] = u32(dot4I8Packed(y[0], y[1])); }

// Multiply-adds from registers, in four chains; y is written only to keep them.
// SPDX-License-Identifier: BSD-3-Clause
@group(0) @binding(0) var<uniform> n: vec4<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let m = vec4<f32>(f32(n.y) * 0.5);
  var a = vec4<f32>(f32(id.x)); var b = a + 1.0; var c = a + 2.0; var d = a + 3.0;
  for (var i = 0u; i < n.x; i++) {
    a = fma(a, m, b); b = fma(b, m, c); c = fma(c, m, d); d = fma(d, m, a);
  }
  if (id.x == n.z) { y[0] = a + b + c + d; }
}

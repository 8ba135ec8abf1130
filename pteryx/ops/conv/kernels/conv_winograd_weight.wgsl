// y[z, c, m] = (G weight[m, c] transposed(G))[z], four of m at a time: the kernels of 3 x 3 as conv_tile multiplies them.
// c and m are filled with 0 to wide_in and wide_out. One invocation per c and four of m.
// Host guarantees: items = wide_in * wide_out / 4.
#option outputs 2..4  // results along each side of a tile: F(2 x 2, 3 x 3) or F(4 x 4, 3 x 3)
#require outputs != 3
#tensor source read f16 | f32
#tensor y raw_write vec4<f32>
#include "common/index.wgsl"
#let side = outputs + 2

struct Params { in_channels: u32, out_channels: u32, wide_out: u32, items: u32 }
@group(0) @binding(0) var<uniform> params: Params;

alias Line = array<vec4<f32>, $side>;

// G applied to three entries.
fn transform(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>) -> Line {
#if outputs == 2
  return Line(a, 0.5 * (a + b + c), 0.5 * (a - b + c), c);
#else
  return Line(0.25 * a, (a + b + c) / -6.0, (a - b + c) / -6.0, a / 24.0 + b / 12.0 + c / 6.0,
              a / 24.0 - b / 12.0 + c / 6.0, c);
#end
}

fn entry(m: u32, c: u32, tap: u32) -> f32 {
  if (m >= params.out_channels || c >= params.in_channels) { return 0.0; }
  return load_source((m * params.in_channels + c) * 9u + tap);
}
fn entries(m: u32, c: u32, tap: u32) -> vec4<f32> {
  return vec4<f32>(entry(m, c, tap), entry(m + 1u, c, tap), entry(m + 2u, c, tap), entry(m + 3u, c, tap));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.items) { return; }
  let fours = params.wide_out / 4u;
  let m = i % fours * 4u;
  let c = i / fours;
#for r in 0..3
  let row$r = transform(entries(m, c, $(3 * r)u), entries(m, c, $(3 * r + 1)u), entries(m, c, $(3 * r + 2)u));
#end
#for w in 0..side
  let column$w = transform(row0[$w], row1[$w], row2[$w]);
#for h in 0..side
  y[$(h * side + w)u * params.items + i] = column$w[$h];
#end
#end
}

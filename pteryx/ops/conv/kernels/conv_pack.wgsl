// y[g, k, m] = weight[g * out_channels + m, c, tap], four of m at a time: what a tile of conv_tile reads, in its order.
// k runs over taps and within a tap over channels, filled with 0 to wide_in of them (`taps`), or over channels and within
// one over taps, as they lie (`channels`); in either order up to `steps` tiles of 16. m is filled with 0 to wide_out.
// One invocation per four. Host guarantees: items = groups * steps * 16 * wide_out / 4.
#option order taps | channels
#tensor source read f16 | f32
#if source_type == f16
#tensor y raw_write vec2<u32>
#else
#tensor y raw_write vec4<f32>
#end
#include "common/index.wgsl"

struct Params { taps: u32, in_channels: u32, out_channels: u32, wide_in: u32, wide_out: u32, steps: u32, items: u32 }
@group(0) @binding(0) var<uniform> params: Params;

fn weight_at(g: u32, m: u32, c: u32, tap: u32) -> f32 {
  if (m >= params.out_channels || c >= params.in_channels || tap >= params.taps) { return 0.0; }
  return load_source(((g * params.out_channels + m) * params.in_channels + c) * params.taps + tap);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.items) { return; }
  let fours = params.wide_out / 4u;
  let m = i % fours * 4u;
  let k = i / fours % (params.steps * 16u);
  let g = i / fours / (params.steps * 16u);
#if order == taps
  let c = k % params.wide_in;
  let tap = k / params.wide_in;
#else
  let c = k / params.taps;
  let tap = k % params.taps;
#end
  let v = vec4<f32>(weight_at(g, m, c, tap), weight_at(g, m + 1u, c, tap), weight_at(g, m + 2u, c, tap),
                    weight_at(g, m + 3u, c, tap));
#if source_type == f16
  y[i] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
#else
  y[i] = v;
#end
}

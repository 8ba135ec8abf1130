// y[g, m, k] = weight[g * out_channels + m, c, tap] in f16, eight of k at a time: what conv_matrix reads. k runs over taps
// and within a tap over channels, filled with 0 to wide_in of them (`taps`), or over channels and within one over taps, as
// they lie (`channels`), filled with 0 to k of them. One invocation per eight. Host guarantees: items = channels * k / 8.
#option order taps | channels
#tensor source read f16 | f32
#tensor y raw_write vec4<u32>
#include "common/index.wgsl"

struct Params { taps: u32, in_channels: u32, wide_in: u32, k: u32, items: u32 }
@group(0) @binding(0) var<uniform> params: Params;

// What f16 cannot hold becomes the largest it can.
fn weight_at(m: u32, k: u32) -> f32 {
#if order == taps
  let c = k % params.wide_in;
  let tap = k / params.wide_in;
#else
  let c = k / params.taps;
  let tap = k % params.taps;
#end
  if (c >= params.in_channels || tap >= params.taps) { return 0.0; }
  return clamp(load_source((m * params.in_channels + c) * params.taps + tap), -65504.0, 65504.0);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let i = flat_id(group, groups, local, 64u);
  if (i >= params.items) { return; }
  let m = i / (params.k / 8u);
  let k = i % (params.k / 8u) * 8u;
  y[i] = vec4<u32>(
#for e in 0..4
      pack2x16float(vec2<f32>(weight_at(m, k + $(2 * e)u), weight_at(m, k + $(2 * e + 1)u))),
#end
  );
}

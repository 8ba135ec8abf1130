// Adds up the parts of a product whose k was cut: y[i] = epilogue(sum over splits of parts[split, i]).
// One invocation per word of y; all parts are asked for before the first is added.
// Host guarantees: parts is [splits, batches, m, n], m and n up to multiples of fill_m and fill_n.
#option splits 1..16
#option fill_m 1..128
#option fill_n 1..128
#option has_add
#if has_add
#option add_type f16 | f32
#end
#option activation none | relu | silu | gelu | gelu_tanh
#option has_scale
#if has_scale
#option scale_type f16 | f32
#end
#option has_residual
#if has_residual
#option residual_type f16 | f32
#end
#tensor parts read f32
#include "matmul/common/matmul.wgsl"
#include "matmul/common/epilogue.wgsl"
#tensor y words f16 | f32

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let w = flat_id(group, groups, local, 64u);
  let count = params.batches * params.m * params.n;
  if (w * y_lanes >= count) { return; }
  let part_m = (params.m + $(fill_m - 1)u) / $(fill_m)u * $(fill_m)u;
  let part_n = (params.n + $(fill_n - 1)u) / $(fill_n)u * $(fill_n)u;
  var word = 0u;
  for (var lane = 0u; lane < y_lanes; lane++) {
    let i = w * y_lanes + lane;
    if (i >= count) { break; }
    let batch = i / params.n / params.m;
    let m = i / params.n % params.m;
    let n = i % params.n;
    let at = (batch * part_m + m) * part_n + n;
#for s in 0..splits
    let part$s = load_parts(at + $(s)u * (params.batches * part_m * part_n));
#end
    var sum = part0;
#for s in 1..splits
    sum += part$s;
#end
    word |= encode_y(lane, epilogue(sum, batch, m, n));
  }
  y[w] = word;
}

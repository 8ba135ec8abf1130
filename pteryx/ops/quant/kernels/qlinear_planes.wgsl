// codes[m, k] = round(x[m, k] / scale[m, unit of k]), as qlinear_dot4.wgsl reads them: integers of `planes` signed bytes and a
// scale for each unit of k (dot4_x.wgsl), 0 behind the end. One invocation per eight of x.
// Host guarantees: rows are filled to `wide` units.
#option planes 2..3
#option x_form plain | norm | whole | rounded  // plain
#require x_form == plain
#option codes nibbles | bytes
#option x_type f16 | f32
#option x_fours
#option wide 1..16777216
#enable subgroups
#let fixed = 0
#let k_whole = 0
#let to_storage = 1
#if codes == bytes
#let eights = 2
#else
#let eights = 4
#end
#include "quant/kernels/common/params.wgsl"
#include "quant/kernels/common/x.wgsl"
const unit: u32 = $(eights * 8)u;
const eights: u32 = $(eights)u;
const wide: u32 = $(wide)u;
#include "quant/kernels/common/dot4_x.wgsl"

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let items = params.m * wide * eights;
  let i = flat_id(group, groups, local, 64u);
  let item = min(i, items - 1u);
  store_x(item, load_x8(item, 0u), i < items);
}

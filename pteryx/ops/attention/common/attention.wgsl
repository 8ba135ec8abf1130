// What the attention kernels share: sizes and strides of a call, which keys a row sees, the softmax's exp.
// Offsets count elements; params.quads is size4. q and y are addressed by q_strides, k and v by k_strides: (batch, head, row).
// The prelude gives `size`, `size4` = ceil(size / 4); `load4_q(at, j)`, `load4_k`, `load4_v`: four elements of the row
// at `at`, from 4 j on, zeros behind its end; `put4_y(at, j, v)`; and `masked(score, batch, head, row, key)`.
#include "common/index.wgsl"

struct Params {
  q_strides: vec4<u32>, k_strides: vec4<u32>, mask_strides: vec4<u32>,
  heads: u32, group: u32, rows: u32, fixed_keys: u32, start: u32, causal: u32, scale: f32,
  splits: u32, split_keys: u32, items: u32, quads: u32
}
@group(0) @binding(0) var<uniform> params: Params;

const lowest: f32 = -3.4028234e38;

// exp of a difference that is not positive; 0 below -103.
fn decay(difference: f32) -> f32 { return select(0.0, exp(max(difference, -104.0)), difference > -103.0); }
fn decay4(d: vec4<f32>) -> vec4<f32> {
  return select(vec4<f32>(0.0), exp(max(d, vec4<f32>(-104.0))), d > vec4<f32>(-103.0));
}

// Keys that take part in the call, and in a row. params.start is live.
fn keys() -> u32 {
  if (params.fixed_keys > 0u) { return params.fixed_keys; }
  return u32(live(params.start)) + params.rows;
}
fn keys_of(row: u32) -> u32 {
  return select(keys(), min(keys(), u32(live(params.start)) + row + 1u), params.causal != 0u);
}
// Splits that have keys: the grid may hold more.
fn live_splits() -> u32 { return (keys() + params.split_keys - 1u) / params.split_keys; }

fn q_offset(batch: u32, head: u32, row: u32) -> u32 {
  return batch * params.q_strides.x + head * params.q_strides.y + row * params.q_strides.z;
}
fn k_offset(batch: u32, head: u32, key: u32) -> u32 {
  return batch * params.k_strides.x + head / params.group * params.k_strides.y + key * params.k_strides.z;
}
fn mask_offset(batch: u32, head: u32, row: u32, key: u32) -> u32 {
  return batch * params.mask_strides.x + head * params.mask_strides.y + row * params.mask_strides.z +
         key * params.mask_strides.w;
}

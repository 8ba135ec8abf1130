// What the attention kernels share: sizes and strides of a call, which keys a row sees, the softmax's exp.
// Offsets count elements; params.quads is size4. strides are (batch, head, row, where it begins); v has those of k, but for
// v_first.
// Rows of whole groups of four elements are bound as vectors, others element by element (f16: two to a word).
#option size 1..1024
#option has_mask
#option live_slots
#let vectors = size % 4 == 0
#include "common/index.wgsl"
#include "common/live.wgsl"

struct Params {
  q_strides: vec4<u32>, k_strides: vec4<u32>, y_strides: vec4<u32>, mask_strides: vec4<u32>,
  heads: u32, group: u32, rows: u32, fixed_keys: u32, start: u32, causal: u32, scale: f32,
  splits: u32, split_keys: u32, items: u32, quads: u32, capacity: u32, v_first: u32
}
@group(0) @binding(0) var<uniform> params: Params;

const size: u32 = $(size)u;
const size4: u32 = $((size + 3) / 4)u;
const lowest: f32 = -3.4028234e38;

#if vectors
#include "common/fours.wgsl"
alias row_f16 = four_f16;
alias row_f32 = four_f32;
#else
alias row_f16 = u32;
alias row_f32 = f32;
#end

// The softmax is one of powers of two: params.scale has the factor log2(e), and what a mask adds gets it.
const log2_e: f32 = 1.4426950408889634;
// Of a difference that is not positive, however far: the result is 0, or next to it, from -150 on.
fn decay(difference: f32) -> f32 { return exp2(max(difference, -150.0)); }
fn decay4(d: vec4<f32>) -> vec4<f32> { return exp2(max(d, vec4<f32>(-150.0))); }

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
  return batch * params.q_strides.x + head * params.q_strides.y + row * params.q_strides.z + params.q_strides.w;
}
fn y_offset(batch: u32, head: u32, row: u32) -> u32 {
  return batch * params.y_strides.x + head * params.y_strides.y + row * params.y_strides.z;
}
fn k_offset(batch: u32, head: u32, key: u32) -> u32 {
  return batch * params.k_strides.x + head / params.group * params.k_strides.y + key * params.k_strides.z + params.k_strides.w;
}
fn v_offset(batch: u32, head: u32, key: u32) -> u32 {
  return batch * params.k_strides.x + head / params.group * params.k_strides.y + key * params.k_strides.z + params.v_first;
}

// A score with what the mask adds to it, or without a key that it keeps out.
fn masked(score: f32, batch: u32, head: u32, row: u32, key: u32) -> f32 {
#if has_mask
  let at = batch * params.mask_strides.x + head * params.mask_strides.y + row * params.mask_strides.z +
      key * params.mask_strides.w;
#if mask_type == bool
  return select(lowest, score, load_mask(at) != 0);
#else
  return max(score + max(load_mask(at), -2.3e38) * log2_e, lowest);
#end
#else
  return score;
#end
}

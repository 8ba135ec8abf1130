// Scale and zero point of 8-bit codes for each row of x: lo = min(x, 0), hi = max(x, 0) over the row,
// scale = max((hi - lo) / (qmax - qmin), eps), zero = clamp(qmin - round(lo / scale), qmin, qmax).
// A team of invocations works on one row. Host guarantees: x is [rows, length], qmin < qmax.
#option zero_from low | nearer  // end of the range: the low one, or the one whose rounding error is smaller
#option team 1..1024
#option wg_size 1..1024
#option block 0..1024
#tensor x read f16 | f32
#tensor scale elements f16 | f32
#tensor zero elements bool | u8 | i8 | i32
#include "common/index.wgsl"

struct Params { rows: u32, length: u32, qmin: f32, qmax: f32, eps: f32 }
@group(0) @binding(0) var<uniform> params: Params;

// (smallest, largest), 0 among them.
alias acc = vec2<f32>;
fn combine(a: acc, b: acc) -> acc { return acc(min(a.x, b.x), max(a.y, b.y)); }
#include "common/fold.wgsl"

// Not yet clamped.
fn zero_of(lo: f32, hi: f32, scale: f32) -> f32 {
#if zero_from == low
  return params.qmin - round(lo / scale);
#else
  let low = lo / scale;
  let high = hi / scale;
  let from_low = params.qmin + low + params.qmax + high > 0.0;
  return round(select(params.qmax - high, params.qmin - low, from_low));
#end
}

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = flat_group(group, groups) * (wg_size / team) + local / team;
  let lane = local & (team - 1u);
  var part = acc(0.0);
  if (row < params.rows) {
    for (var i = lane; i < params.length; i += team) {
      let v = load_x(row * params.length + i);
      part = combine(part, acc(v, v));
    }
  }
  let range = fold(part, local);
  if (row >= params.rows || lane != 0u) { return; }
  let s = max((range.y - range.x) / (params.qmax - params.qmin), params.eps);
  store_scale(row, s);
  store_zero(row, i32(clamp(zero_of(range.x, range.y, s), params.qmin, params.qmax)));
}

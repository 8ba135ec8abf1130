// y[o, k, i] = exp(x - max) / sum exp(x - max) over k, or its logarithm. A team of invocations works on one (o, i).
// Host guarantees: x and y are [outer, length, inner], rows = outer * inner, y_lanes divides length if inner is 1, else is 1.
// The prelude gives `fn result(x: f32, peak: f32, total: f32) -> f32`.
#include "common/index.wgsl"

struct Params { rows: u32, length: u32, inner: u32 }
@group(0) @binding(0) var<uniform> params: Params;

// (largest x, sum of exp(x - largest)) of a part of a row.
alias acc = vec2<f32>;
const lowest: f32 = -3.4028234e38;

// exp of a difference that is not positive. Below -103 the result is 0; the clamp keeps infinities out of exp.
fn decay(difference: f32) -> f32 { return select(0.0, exp(max(difference, -104.0)), difference > -103.0); }

fn combine(a: acc, b: acc) -> acc {
  let peak = max(a.x, b.x);
  return acc(peak, a.y * decay(a.x - peak) + b.y * decay(b.x - peak));
}

// Infinities stay out of sums; a result is made from x as it is.
fn x_at(base: u32, k: u32) -> f32 { return load_x(base + k * params.inner); }
fn finite_at(base: u32, k: u32) -> f32 { return max(x_at(base, k), lowest); }

@compute @workgroup_size(wg_size)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let row = flat_group(group, groups) * (wg_size / team) + local / team;
  let lane = local & (team - 1u);
  let inside = row < params.rows;
  let base = row / params.inner * params.inner * params.length + row % params.inner;
  var part = acc(lowest, 0.0);
  if (inside) {
    for (var k = lane; k < params.length; k += team) { part.x = max(part.x, finite_at(base, k)); }
    for (var first = lane; first < params.length; first += team * 32u) {
      var sum = 0.0;
      let end = min(first + team * 32u, params.length);
      for (var k = first; k < end; k += team) { sum += decay(finite_at(base, k) - part.x); }
      part.y += sum;
    }
  }
  let whole = fold(part, local);
  if (!inside) { return; }
  for (var k = lane * y_lanes; k < params.length; k += team * y_lanes) {
    var word = 0u;
    for (var j = 0u; j < y_lanes; j++) { word |= encode_y(j, result(x_at(base, k + j), whole.x, whole.y)); }
    y[(base + k * params.inner) / y_lanes] = word;
  }
}
